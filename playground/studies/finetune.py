"""Fine-tuning: train a model on another text, with its own tokenizer, and measure what it learned and forgot."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..data import LANGUAGES, Corpus, TextError, Tokenizer, corpus_from_text, visible
from ..data.corpus import VALIDATION_SHARE
from ..data.tokenizers import in_known_case
from ..engine import SamplingConfig, generate
from ..model import ModelConfig, Transformer
from ..training.config import TrainConfig
from .scores import FEWEST, PARTS, SHORTEST, Score, score, score_windows

MOST_UNKNOWN = 0.02
"""Share of a text's tokens that a model may not know; of a text with more it would learn to write the unknown one."""
NAMED = 20
"""Unknown characters or words that are named, at most."""
TOKENS_PER_STEP, PASSES, STEPS = 2048, 85, (20, 200)
"""Of a step; how often a text is read; and how many steps that comes to, at least and at most. After 25 passes over a
page, half of the words that the stories model wrote came from it. After 85, it was four in five; after 120, whole
phrases."""
WRITTEN = 60
"""Tokens that continue each prompt."""
OPERATIONS, CHARACTERS = 2e12, (5_000, 30_000)
"""What reading the old text once may take, and how much of it is read at least and at most."""


def tuning_corpus(text: str, tokenizer: Tokenizer, context_length: int = 1, *, name: str = "your text") -> Corpus:
    """A text in a model's own tokens, in the case that it knows.

    Raises TextError if its held-out part has no window of this context, or if too many tokens are unknown.
    """
    text = in_known_case(text, tokenizer)
    corpus = replace(corpus_from_text(text, tokenizer, name=name), further=True)
    if len(corpus.val) <= context_length:
        needed = math.ceil(len(text) * (context_length + 1) / max(len(corpus.val), 1) / 100) * 100
        raise TextError(
            f"this text has {len(text):,} characters; to train this model further, you need about {needed:,}. Paste a "
            "longer one"
        )
    unknown, tokens = getattr(tokenizer, "unknown", None), len(corpus.train) + len(corpus.val)
    lacking = sum(int((part == unknown).sum()) for part in (corpus.train, corpus.val)) if unknown is not None else 0
    if lacking > MOST_UNKNOWN * tokens:
        named, unit = named_parts(tokenizer.unknown_parts(text)), "words" if tokenizer.kind == "word" else "characters"
        raise TextError(
            f"the model's {tokenizer.name} lack {100 * lacking / tokens:.0f} % of this text: {named}. Remove these "
            f"{unit}, or train a new model"
        )
    return corpus


def named_parts(parts: Sequence[str]) -> str:
    """Characters or words in quotes; only the first few of a long list."""
    return ", ".join(f"“{visible(part)}”" for part in parts[:NAMED]) + ", …" * (len(parts) > NAMED)


def shortest(context_length: int) -> int:
    """How many tokens a text must have about, so that its held-out part has a window of this context."""
    return math.ceil((context_length + 1) / VALIDATION_SHARE / 100) * 100


def tuning_config(config: ModelConfig, tokens: int = 0) -> TrainConfig:
    """How to fine-tune such a model on a text of so many tokens (0: a long one): the wider it is, the gentler, since it
    is to keep what it knows."""
    batch = max(min(TOKENS_PER_STEP // config.context_length, 16), 1)
    least, most = STEPS
    steps = min(max(PASSES * tokens // (batch * config.context_length), least), most) if tokens else most
    return TrainConfig(
        steps=steps,
        batch_size=batch,
        warmup_steps=10,
        optimizer="adamw",
        learning_rate=round(1e-3 * min(1.0, 128 / config.d_model), 6),
        weight_decay=0.01,
        eval_every=max(steps // 10, 1),
        eval_windows=64,
    )


def shortened(model: Transformer, context_length: int) -> Transformer:
    """The same model with a shorter context, which takes less memory to train. Raises ValueError for a longer one."""
    if context_length > model.config.context_length:
        raise ValueError(f"the model's context has {model.config.context_length:,} tokens and cannot become longer")
    state = model.state_dict()
    if model.config.positions == "learned":
        state["position_embedding.weight"] = state["position_embedding.weight"][:context_length]
    short = Transformer(model.config.replace(context_length=context_length))
    short.load_state_dict(state)
    return short


@dataclass(frozen=True)
class Measured:
    """A model's scores on the new and the old text, and its continuations of the prompts."""

    new: Score
    old: Score | None
    samples: tuple[str, ...]
    prompts: tuple[int, ...] = ()
    """How many characters of each sample are its prompt; empty if this was not recorded."""
    origins: tuple[str, ...] = ()
    """Where each prompt comes from: `run`, `old` or `new`; empty if this was not recorded."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Measured:
        """The inverse of `dataclasses.asdict`."""
        old = values["old"] and Score(**values["old"])
        listed = (tuple(values.get(name, ())) for name in ("samples", "prompts", "origins"))
        return cls(Score(**values["new"]), old, *listed)


@dataclass(frozen=True)
class Exam:
    """What a model is asked before and after: to predict text it does not learn from, and to continue prompts."""

    new: tuple[torch.Tensor, torch.Tensor]
    """Inputs and targets (N, T) of the new text: the windows that validate the training."""
    parts: int
    """Into how many parts these are cut, for an interval."""
    old: str | None
    """Of the text that it had learned from; None where that is not known."""
    prompts: dict[str, str]
    """Each prompt, and where it comes from, as in `Measured`."""

    @classmethod
    def of(cls, corpus: Corpus, old: str | None, prompt: str, config: ModelConfig, training: TrainConfig) -> Exam:
        """The exam of a model that is about to learn from a corpus."""
        least, most = CHARACTERS
        length = min(max(int(OPERATIONS / config.flops_per_token()), least), most)
        new, old = corpus.judging_text(), old[:length] if old and len(old) > FEWEST * SHORTEST + 50 else None
        prompts = {prompt: "run"}
        for origin, text in (("old", old or ""), ("new", new)):
            prompts.setdefault(_beginning(text, corpus.tokenizer), origin)
        prompts.pop("", None)
        windows = corpus.windows("val", config.context_length, training.eval_windows)
        return cls(windows, min(max(len(new) // SHORTEST, FEWEST), PARTS), old, prompts)

    def taken(
        self, model: Transformer, tokenizer: Tokenizer, should_stop: Callable[[], bool] = lambda: False
    ) -> Measured:
        """How a model does. Raises Interrupted."""
        new = score_windows(model, tokenizer, *self.new, self.parts, should_stop=should_stop)
        old = self.old and score(model, tokenizer, self.old, should_stop=should_stop)
        sampling, samples, given = SamplingConfig(temperature=0.8), [], [*map(tokenizer.encode, self.prompts)]
        for prompt in given:
            steps = generate(model, prompt, WRITTEN, sampling)
            samples.append(tokenizer.decode(prompt + [step.tokens[0] for step in steps]))
        lengths = tuple(len(tokenizer.decode(prompt)) for prompt in given)
        return Measured(new, old, tuple(samples), lengths, tuple(self.prompts.values()))


def _beginning(text: str, tokenizer: Tokenizer) -> str:
    """The first four words of a whole sentence or line, where there is one: of one without unknown parts, if any.

    In characters, what parts them from the next word belongs to them, or the model might go on with the last word.
    """
    whole = re.finditer(r"(?:[.!?][\"'”’]?\s|\n)\s*(?=(\S+(?:[ ]+\S+){3})(\s?))", text)
    begun = [(found[1].split(), found[2]) for found in whole] or [(text.partition(" ")[2].split()[:4], " ")]
    said = [" ".join(words) + after * (tokenizer.kind == "char") for words, after in begun]
    return next((each for each in said if not tokenizer.unknown_parts(each)), said[0])


def held_out_of(about: dict[str, Any]) -> str | None:
    """Text of the language that a model's notes say it learned, not learned itself; None where they name none."""
    language = about.get("language") or (about.get("source") or {}).get("language")
    if language not in LANGUAGES:
        return None
    return LANGUAGES[language].sample(CHARACTERS[1], seed=2 * about.get("seed", 0) + 1)


_KEPT = ("corpus", "language", "source", "seed", "prompt", "text_sha256")


def parent_note(model: Transformer, name: str, about: dict[str, Any]) -> dict[str, Any]:
    """A fine-tuned model's note on its parent: name, text, and a fingerprint of the weights.

    The note names a language as the model's own notes do, for `held_out_of`.
    """
    weights = hashlib.sha256()
    for _, tensor in sorted(model.state_dict().items()):
        weights.update(tensor.detach().cpu().contiguous().numpy())
    same = {key: about[key] for key in _KEPT if about.get(key) is not None}
    return {"name": name, **same, "weights_sha256": weights.hexdigest()}
