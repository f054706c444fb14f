"""Runs: what a visitor asked for (RunSpec), carried out as one iterator of events (run_training).

All inputs and outputs are plain data or a model on the CPU. So another runner with the same signature, on another
machine or in another process, can take this one's place.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from ..data import (
    LANGUAGES,
    Baselines,
    Corpus,
    TextError,
    Tokenizer,
    corpus_from_language,
    corpus_from_sentences,
    corpus_from_text,
    read_hub,
)
from ..data.judging import LearnedText
from ..data.sentences import SENTENCES as TWENTY
from ..data.tokenizers import in_known_case, tokenizer_from_dict
from ..devices import free_memory
from ..model import ModelConfig, Transformer
from ..processes import threads_for
from ..storage import Checkpoint
from ..studies.finetune import Exam, held_out_of, parent_note, shortened, tuning_corpus
from ..training import BestKept, Evaluated, Finished, Sampled, TrainConfig, TrainEvent, train
from ..training.comparison import SideEvent
from ..training.losses import Interrupted
from ..training.proof import device_for
from ..training.skills import judged, judged_in_the_end
from ..training.states import is_behind
from .limits import Limits, check_step_memory

LANGUAGE_CHARACTERS = 500_000
LANGUAGE_VALIDATION = 40_000
SENTENCES = "sentences"
OWN_TEXT, HUB_FILE = "text", "hub"
MOST_PASTED = 200_000
"""Most characters of the visitor's own text that go back into a form."""


@dataclass(frozen=True)
class Source:
    """The text to learn from."""

    kind: str
    """A language's name, `sentences`, `text` or `hub`."""
    text: str = ""
    """The text itself, for `text`."""
    repo: str = ""
    """user/name of a public Hub repository, for `hub`."""
    filename: str = ""
    """A text file in it."""
    repo_type: str = "dataset"
    """dataset, model or space."""
    name: str = ""
    """The name of a visitor's own text: its file's name, or its first words."""

    @property
    def pasted(self) -> str:
        """The source's text for a form; empty if it is too long for a page."""
        return self.text if len(self.text) <= MOST_PASTED else ""

    @property
    def title(self) -> str:
        """Its name on the page."""
        if self.kind in LANGUAGES:
            return LANGUAGES[self.kind].title
        own = self.name or "Your text"
        return {SENTENCES: "Twenty sentences", OWN_TEXT: own, HUB_FILE: self.filename}.get(self.kind, self.kind)


@dataclass(frozen=True)
class RunSpec:
    """A requested run. The model's vocab_size is a guess until the text has been read."""

    source: Source
    model: ModelConfig
    training: TrainConfig
    tokenizer: str = "char"
    vocab_size: int | None = None
    """Size of a byte-level vocabulary to be trained; None for its default."""
    size: str = "custom"
    """The size dial's position, for the run's name."""
    parent: str = ""
    """The id of the model that is trained further; empty for a new model."""

    @property
    def prompt(self) -> str:
        """The text that samples and predictions continue."""
        return self.training.sample_prompt


@dataclass(frozen=True)
class Prepared:
    """The text was read and the model built; training begins."""

    config: ModelConfig
    tokenizer: Tokenizer
    corpus_sha256: str
    train_tokens: int
    val_tokens: int
    language: str | None
    unknown: tuple[str, ...]
    """Parts of the prompt that the tokenizer does not know."""
    asked: tuple[int, ...] = ()
    """The tokens after which predictions are made: the prompt's, or else the first validation token."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return vars(self) | {"config": self.config.to_dict(), "tokenizer": self.tokenizer.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Prepared:
        """The inverse of `to_dict`."""
        config, tokenizer = ModelConfig.from_dict(values["config"]), tokenizer_from_dict(values["tokenizer"])
        asked, unknown = tuple(values["asked"]), tuple(values["unknown"])
        return cls(**{**values, "config": config, "tokenizer": tokenizer, "asked": asked, "unknown": unknown})

    @classmethod
    def of(cls, corpus: Corpus, config: ModelConfig, prompt: str = "") -> Prepared:
        """What is known about a corpus and the model that is to learn it."""
        asked = corpus.tokenizer.encode(prompt)[-config.context_length :] or [max(int(corpus.val[0]), 0)]
        return cls(
            config=config,
            tokenizer=corpus.tokenizer,
            corpus_sha256=corpus.sha256,
            train_tokens=len(corpus.train),
            val_tokens=len(corpus.val),
            language=corpus.language.name if corpus.language else None,
            unknown=tuple(corpus.tokenizer.unknown_parts(prompt))[:8],
            asked=tuple(asked),
        )


@dataclass(frozen=True)
class Predicted:
    """What the model expects after the prompt."""

    step: int
    probabilities: torch.Tensor
    """(V,) next-token probabilities."""


@dataclass(frozen=True)
class Laddered:
    """Event: the baselines' losses are known."""

    baselines: Baselines
    learned: LearnedText | None = None
    """The text learned from, to compare others with; None if a grammar judges."""


@dataclass(frozen=True)
class Learned:
    """The run is over; holds the model, on the CPU."""

    model: Transformer


@dataclass(frozen=True)
class Tuned:
    """A model was trained further; holds the notes for its checkpoint."""

    about: dict[str, Any]
    """`parent` as `finetune.parent_note` makes it, and `tuning`: what was measured before and after, at the best
    step if that was an earlier one, and the baselines of the old text, where they are known."""


@dataclass(frozen=True)
class Measuring:
    """What further training has changed is being measured; this part of it is done, 0 … 1."""

    share: float


RunEvent = Measuring | Prepared | Predicted | Laddered | Learned | Tuned | TrainEvent
Parent = Callable[[], tuple[Checkpoint, Source | None]]
"""Returns the model that is trained further and, if known, the text that it learned from."""


def run_training(
    spec: RunSpec,
    limits: Limits,
    *,
    folder: Path | None = None,
    resume: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    trainer: Callable[..., Iterator[TrainEvent]] = train,
    parent: Parent | None = None,
) -> Iterator[RunEvent]:
    """Read the text, build the model, train it; the events end with Learned (and Laddered, if that took longer).

    With a `parent`, its weights and tokens are used instead of new ones, and Tuned says what training has changed.

    `folder` receives the state from which a later call with `resume` continues; `trainer` is `train` or an equivalent
    that runs elsewhere. Raises ValueError with a sentence if text, model and settings do not fit together or exceed a
    limit.
    """
    before, source = parent() if parent else (None, None)
    if before:
        prompt = in_known_case(spec.prompt, before.tokenizer)
        spec = replace(spec, training=spec.training.replace(sample_prompt=prompt))
    corpus = corpus_for(spec, limits, before.tokenizer if before else None)
    config = before.config if before else spec.model.replace(vocab_size=corpus.vocab_size)
    limits.check_training(config, spec.training)
    corpus.check_context(config.context_length)
    if before:
        device = device_for(spec.training, config)[0]
        check_step_memory(config, spec.training.batch_size, free_memory(device), limits.where)
    model = shortened(before.model, config.context_length) if before else Transformer(config, seed=spec.training.seed)
    yield (prepared := Prepared.of(corpus, config, spec.prompt))
    if should_stop():
        return
    prompt = list(prepared.asked)
    if not resume:
        yield Predicted(0, predict(model, prompt))
    baselines = Background(lambda: laddered(corpus, config.context_length, spec.training))
    # a model that learns elsewhere is here only after sampling
    moments = Evaluated if trainer is train else Sampled
    events = trainer(model, corpus, spec.training, folder=folder, resume=resume, should_stop=should_stop)
    finished = best = None
    with threads_for(config.numbers_in_step(spec.training.batch_size)):
        for event in baselines.beside(judged(events, model, corpus, at=moments)):
            yield event
            if isinstance(event, (Sampled, Finished)):
                yield Predicted(event.step, predict(model, prompt))
            finished = event if isinstance(event, Finished) else finished
            best = event if isinstance(event, BestKept) else best
        if before and finished is not None:
            models = {"before": before.model, "after": model}
            if best is not None and is_behind(finished.val_loss, best.val_loss):
                models["best"] = copy.deepcopy(model)
                models["best"].load_state_dict(best.state)
            yield from _tuned(before, source, models, corpus, spec, should_stop)
        yield Learned(model)
        yield from baselines.rest()
        if finished is not None and finished.step:
            yield judged_in_the_end(finished, model, corpus)


def _tuned(
    before: Checkpoint, source: Source | None, models: dict[str, Transformer], corpus: Corpus, spec: RunSpec,
    should_stop: Callable[[], bool],
) -> Iterator[Measuring | Tuned]:  # fmt: skip
    """What further training has changed in a model; the last part of its old text was held out."""
    own = source.text[-(len(source.text) // 11) :] if source and source.text else None
    exam = Exam.of(corpus, own or held_out_of(before.about), spec.prompt, models["after"].config, spec.training)
    found = {}
    for when, each in models.items():
        yield Measuring((len(found) + 0.5) / (len(models) + 0.5))
        try:
            found[when] = asdict(exam.taken(each, corpus.tokenizer, should_stop))
        except Interrupted:
            return
    parent = parent_note(before.model, before.name, before.about)
    yield Tuned({"parent": parent, "tuning": found | {"ladder": before.about.get("ladder")}})


def laddered(corpus: Corpus, context_length: int, training: TrainConfig) -> Laddered:
    """The baselines on the windows that validate such a training."""
    baselines = corpus.baselines(context_length, training.eval_windows)
    return Laddered(baselines, None if corpus.language else corpus.learned())


def corpus_for(spec: RunSpec, limits: Limits, tokenizer: Tokenizer | None = None) -> Corpus:
    """The corpus for a spec, its size checked before it is split into tokens; in a model's own tokens, if given."""
    source = spec.source
    if tokenizer is not None:
        return tuning_corpus(source_text(source, limits), tokenizer, spec.model.context_length, name=source.title)
    if source.kind in LANGUAGES:
        return _language(source.kind, spec.tokenizer)
    if source.kind == SENTENCES:
        return _sentences()
    return corpus_from_text(source_text(source, limits), spec.tokenizer, name=source.title, vocab_size=spec.vocab_size)


def source_text(source: Source, limits: Limits) -> str:
    """A source's text. Raises ValueError if there is none, or if it exceeds a limit."""
    if source.kind in LANGUAGES:
        return LANGUAGES[source.kind].sample(LANGUAGE_CHARACTERS, seed=0)
    if source.kind == SENTENCES:
        return "\n".join(TWENTY)
    if source.kind == HUB_FILE:
        text = read_hub(source.repo, source.filename, repo_type=source.repo_type, max_bytes=limits.text_bytes)
    elif source.kind == OWN_TEXT:
        text = source.text
    else:
        raise TextError(f"there is nothing called {source.kind!r} to learn from: choose a language or your own text")
    limits.check_text(text)
    return text


@lru_cache(maxsize=8)
def _language(name: str, unit: str) -> Corpus:
    return corpus_from_language(name, unit=unit, n_characters=LANGUAGE_CHARACTERS, n_validation=LANGUAGE_VALIDATION)


def warm_up(language: str, unit: str) -> None:
    """Prepare a language's text in the background, so that the first press of Train does not wait for it."""
    threading.Thread(target=_language, args=(language, unit), daemon=True).start()


@lru_cache(maxsize=1)
def _sentences() -> Corpus:
    return corpus_from_sentences()


@torch.no_grad()
def predict(model: Transformer, ids: list[int]) -> torch.Tensor:
    """Next-token probabilities (V,) after these ids, on the CPU."""
    return model(torch.tensor([ids])).logits[0, -1].float().softmax(dim=-1).cpu()


class Background:
    """One computation in its own thread, beside a training; its errors are raised when its result is due."""

    def __init__(self, compute: Callable[[], Laddered]):
        self._compute = compute
        self._result: Future[Laddered] | None = None
        self.taken = False
        """Whether the result was returned."""

    def beside(self, events: Iterable[Any]) -> Iterator[Any]:
        """Pass on the events, and the result as soon as it is there.

        The computation begins after the first evaluation, so as not to delay it.
        """
        for event in events:
            yield event
            told = event.event if isinstance(event, SideEvent) else event
            if self._result is None and isinstance(told, Evaluated):
                self._result = ThreadPoolExecutor(1).submit(self._compute)
            if self._result is not None and self._result.done():
                yield from self.rest()

    def rest(self) -> Iterator[Laddered]:
        """Wait for the result, unless it was returned already or never begun."""
        if self._result is not None and not self.taken:
            self.taken = True
            yield self._result.result()
