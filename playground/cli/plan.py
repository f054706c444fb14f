"""Plan what `train` is to do: a new run, the same run again, or a continued run. No option is ignored."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path

from ..data import LANGUAGES, Corpus, corpus_from_language, corpus_from_sentences, corpus_from_text, read_file
from ..data.corpus import text_sha256
from ..data.tokenizers import Tokenizer
from ..devices import free_memory
from ..model import PRESETS, ModelConfig, Transformer
from ..service.limits import check_step_memory
from ..storage import load
from ..storage.bounds import check_bounds
from ..storage.opening import open_model
from ..studies.finetune import Exam, held_out_of, parent_note, shortened, tuning_config, tuning_corpus
from ..training import History, TrainConfig
from ..training.autosave import reads
from ..training.proof import device_for
from ..training.recipes import recipe_for
from ..training.resume import SavedRun
from ..training.states import risen_for
from .settings import parse_settings

PRESET = "small"
LANGUAGE_NAMES = (*LANGUAGES, "sentences")
MAX_VOCABULARY = 1_000_000
MAX_WINDOWS = 100_000
MAX_TEXT_BYTES = 100_000_000
"""Most bytes of a text: splitting it into tokens takes some 35 times as many bytes of memory."""


@dataclass(frozen=True)
class PlannedRun:
    """A run that may begin, or continue."""

    corpus: Corpus
    model: Transformer
    config: TrainConfig
    about: dict
    """The checkpoint's notes on how it was made, enough to make it again."""
    history: History = field(default_factory=History)
    """For a run that continues: its history so far."""
    resume: bool = False
    """Whether the folder holds a state to continue from."""
    exam: Exam | None = None
    """The tests of a fine-tuned model before and after training."""


def fresh(options: argparse.Namespace) -> PlannedRun:
    """A new run. Raises ValueError with a sentence if it cannot be made."""
    if options.parent is not None:
        return _tuned(options)
    if options.old_text is not None:
        raise ValueError("--old-text needs a model to train further: add --from, or leave it out")
    model_changes, config = check(options)
    preset = PRESET if options.preset is None else options.preset
    source, seed = _source(options) or {"text": None, "language": "stories"}, options.seed or 0
    corpus = _corpus(source, options.tokenizer, options.vocab_size, seed)
    shape = PRESETS[preset].replace(**{"vocab_size": corpus.vocab_size, **model_changes})
    about = {
        "corpus": corpus.name,
        "source": source,
        "tokenizer": options.tokenizer,
        "vocab_size": options.vocab_size,
        "seed": seed,
        "text_sha256": corpus.sha256,
        "reads": reads(corpus),
        "preset": preset,
        "training": config.to_dict(),
        "prompt": _prompt(options, corpus.language.prompt if corpus.language else ""),
    }
    return PlannedRun(corpus, Transformer(shape, seed=seed), config, about)


def check(options: argparse.Namespace) -> tuple[dict, TrainConfig]:
    """What --set changes in a new run's model, and its training: all that can be checked before the text is read."""
    preset = PRESET if options.preset is None else options.preset
    _check_place(options)
    if preset not in PRESETS:
        raise ValueError(f"there is no preset called {preset!r}; choose one of {', '.join(PRESETS)}")
    if options.language is not None and options.language not in LANGUAGE_NAMES:
        raise ValueError(f"there is no language called {options.language!r}; choose one of {', '.join(LANGUAGE_NAMES)}")
    model_changes, training_changes = parse_settings(options.set)
    if options.vocab_size is not None and not 2 <= options.vocab_size <= MAX_VOCABULARY:
        raise ValueError(f"--vocab-size must be between 2 and {MAX_VOCABULARY:,}, not {options.vocab_size:,}")
    check_bounds(PRESETS[preset].replace(**model_changes))
    config = _config(options, recipe_for(preset), training_changes)
    if config.steps < 1:
        raise ValueError("a new model needs steps of at least 1")
    return model_changes, config


def _check_place(options: argparse.Namespace) -> None:
    out = Path(options.out)
    if out.exists() and (not out.is_dir() or any(not path.name.startswith(".") for path in out.iterdir())):
        raise ValueError(f"{out} exists already: choose another --out, delete it, or add --resume to continue its run")
    if options.seed is not None and options.seed < 0:
        raise ValueError(f"--seed must be at least 0, not {options.seed}")


def _config(options: argparse.Namespace, recipe: TrainConfig, changes: dict) -> TrainConfig:
    """A new run's recipe with the requested changes. Raises ValueError."""
    config = _asked(options, recipe.replace(**{"seed": options.seed or 0, **changes}))
    for name in ("batch_size", "eval_windows"):
        if (getattr(config, name) or 0) > MAX_WINDOWS:
            raise ValueError(
                f"{name} is {getattr(config, name):,}; at most {MAX_WINDOWS:,} windows can be read at once"
            )
    return config


def _tuned(options: argparse.Namespace) -> PlannedRun:
    """A run that trains an existing model on another text. Raises ValueError with a sentence if it cannot be made."""
    _check_tuning(options)
    _check_place(options)
    if options.text is None:
        raise ValueError("--from needs a text to learn: add --text FILE")
    model_changes, training_changes = parse_settings(options.set)
    if odd := model_changes.keys() - {"context_length"}:
        raise ValueError(f"--from keeps the model's shape, all but its context_length: leave --set {min(odd)} out")
    source = _source(options)
    text = read_file(source["text"], max_bytes=MAX_TEXT_BYTES)

    def config_for(shape: ModelConfig, tokens: int = 0) -> TrainConfig:
        return _config(options, tuning_config(shape.replace(**model_changes), tokens), training_changes)

    def check_memory(shape: ModelConfig) -> None:
        config, shape = config_for(shape), shape.replace(**model_changes)
        check_step_memory(shape, config.batch_size, free_memory(device_for(config, shape)[0]), "this machine")

    checkpoint = open_model(options.parent, check=check_memory)
    model = checkpoint.model
    if model_changes:
        model = shortened(model, model_changes["context_length"])
    corpus = tuning_corpus(text, checkpoint.tokenizer, model.config.context_length, name=Path(source["text"]).name)
    config = config_for(checkpoint.config, len(corpus.train))
    parent = parent_note(checkpoint.model, checkpoint.name, checkpoint.about)
    about = {
        "corpus": corpus.name, "source": source, "tokenizer": None, "vocab_size": None, "seed": config.seed,
        "text_sha256": corpus.sha256, "reads": reads(corpus), "training": config.to_dict(), "parent": parent,
        "old_text": options.old_text and str(Path(options.old_text).resolve()),
        "prompt": _prompt(options, str(parent.get("prompt") or "")),
        "tuning": {"ladder": None if options.old_text else checkpoint.about.get("ladder")},
    }  # fmt: skip
    return PlannedRun(corpus, model, config, about, exam=_exam(corpus, about, model.config, config))


def _check_tuning(options: argparse.Namespace) -> None:
    for name in ("preset", "language", "tokenizer", "vocab_size"):
        if getattr(options, name) is not None:
            flag = name.replace("_", "-")
            raise ValueError(f"a model that is trained further keeps its own shape and tokens: leave --{flag} out")


def _exam(corpus: Corpus, about: dict, shape: ModelConfig, config: TrainConfig) -> Exam:
    """The tests of a fine-tuned model; its old text is --old-text, a language's, or an unchanged file."""
    parent, old = about["parent"], about["old_text"] and read_file(about["old_text"], max_bytes=MAX_TEXT_BYTES)
    file = (parent.get("source") or {}).get("text")
    if old is None and file and Path(file).is_file():
        text = read_file(file, max_bytes=MAX_TEXT_BYTES).replace("\r\n", "\n")
        same = text_sha256(text) == parent.get("text_sha256")
        old = text[-(len(text) // 11) :] if same else None  # within the tenth that was held out
    return Exam.of(corpus, old or held_out_of(parent), about["prompt"], shape, config)


def resumed(options: argparse.Namespace) -> PlannedRun:
    """The run in the folder, with the requested changes, if they are allowed.

    Raises a ValueError that names what cannot be changed, or says that nothing is left to do.
    """
    out = Path(options.out)
    if options.parent is not None or options.old_text is not None:
        raise ValueError("--resume continues the run in --out: leave --from and --old-text out")
    checkpoint = load(out)
    about = {"preset": PRESET, "prompt": "", **checkpoint.about}
    if "source" not in about or "training" not in about:
        raise ValueError(f"{out} was not made by this command, so it cannot be resumed")
    saved = SavedRun.of(out)
    if options.preset not in (None, about["preset"]):
        raise ValueError(f"this run must continue as it began: --preset was {about['preset']}")
    model_changes, training_changes = parse_settings(options.set)
    if options.seed is not None:
        training_changes.setdefault("seed", options.seed)
    config = _asked(options, saved.training.replace(**training_changes))
    source = _source(options) or about["source"]
    tokenizer = options.tokenizer or about["tokenizer"]
    vocab_size = about["vocab_size"] if options.vocab_size is None else options.vocab_size
    tuned = "parent" in about
    if tuned:
        _check_tuning(options)
    corpus = _corpus(source, checkpoint.tokenizer if tuned else tokenizer, vocab_size, about["seed"])
    shape = checkpoint.config.replace(**model_changes)
    saved.changes(shape, config, corpus)
    history = saved.history  # skills judged beside the training are only in the model's record
    history.judged = [record for record in checkpoint.history.judged if record["step"] <= saved.step]
    _check_more_to_do(saved, config)
    about |= {"source": source, "training": config.to_dict(), "prompt": _prompt(options, about["prompt"])}
    model = checkpoint.model if tuned else Transformer(shape, seed=about["seed"])  # whose weights are then restored
    exam = _exam(corpus, about, shape, config) if tuned else None
    return PlannedRun(corpus, model, config, about, history, resume=True, exam=exam)


def _check_more_to_do(saved: SavedRun, config: TrainConfig) -> None:
    """Raise ValueError, with the options that let it continue, if a run would end at once."""
    late = config.max_seconds is not None and saved.seconds >= config.max_seconds
    risen = 0 < config.patience <= risen_for(saved.history, config.eval_every)
    if saved.step >= config.steps or late or risen:
        more = "--set max_seconds=none" if late else "--set patience=0" if risen else f"--steps above {saved.step:,}"
        raise ValueError(f"this run ended after {saved.step:,} steps: to train it longer, add {more}")


def _asked(options: argparse.Namespace, config: TrainConfig) -> TrainConfig:
    """The settings, with the values from their own options."""
    set_too = {pair.partition("=")[0] for pair in options.set}
    for name, setting in (("steps", "steps"), ("prompt", "sample_prompt")):
        if getattr(options, name) is not None and setting in set_too:
            raise ValueError(f"--{name} and --set {setting} say the same: leave one of the two out")
    if options.steps is not None:
        config = config.replace(steps=options.steps)
    if options.prompt is not None:
        config = config.replace(sample_prompt=options.prompt, sample_every=config.sample_every or config.eval_every)
    return config


def _prompt(options: argparse.Namespace, unasked: str) -> str:
    return unasked if options.prompt is None else options.prompt


def _source(options: argparse.Namespace) -> dict | None:
    if options.text is not None:
        return {"text": str(Path(options.text).resolve()), "language": None}
    return {"text": None, "language": options.language} if options.language is not None else None


def _corpus(source: dict, tokenizer: str | Tokenizer | None, vocab_size: int | None, seed: int) -> Corpus:
    if vocab_size is not None and (not source["text"] or tokenizer not in ("word", "bpe")):
        raise ValueError("--vocab-size bounds what is found in a --text that is read with --tokenizer word or bpe")
    if source["text"]:
        text = read_file(source["text"], max_bytes=MAX_TEXT_BYTES)
        if not isinstance(tokenizer, str | None):
            return tuning_corpus(text, tokenizer, name=Path(source["text"]).name)
        return corpus_from_text(text, tokenizer or "char", name=Path(source["text"]).name, vocab_size=vocab_size)
    if source["language"] != "sentences":
        return corpus_from_language(source["language"], seed=seed, unit=tokenizer or "char")
    if tokenizer not in (None, "word"):
        raise ValueError(f"the twenty sentences are read by word, not by {tokenizer}")
    return corpus_from_sentences()
