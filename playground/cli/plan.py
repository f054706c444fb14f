"""What `train` is asked to do: a new run, the same run begun again, or one that goes on. Nothing asked is ignored."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path

from ..data import LANGUAGES, Corpus, corpus_from_language, corpus_from_sentences, corpus_from_text, read_file
from ..model import PRESETS, ModelConfig, Transformer
from ..storage import CheckpointError, load
from ..storage.bounds import check_bounds
from ..training import History, TrainConfig
from ..training.autosave import FILE, reads
from ..training.recipes import recipe_for
from ..training.resume import SavedRun
from ..training.states import risen_for
from .settings import parse_settings

PRESET = "small"
LANGUAGE_NAMES = (*LANGUAGES, "sentences")
MAX_VOCABULARY = 1_000_000
MAX_WINDOWS = 100_000
MAX_TEXT_BYTES = 100_000_000
"""Of a text: while it is taken apart, some 35 times as many bytes are in memory."""


@dataclass(frozen=True)
class PlannedRun:
    """A run that may begin, or go on."""

    corpus: Corpus
    model: Transformer
    config: TrainConfig
    about: dict
    """What its checkpoint says of how it was made, enough to make it again."""
    history: History = field(default_factory=History)
    """Of a run that goes on: what came before."""
    resume: bool = False
    """Whether the folder holds a state to go on from."""
    notice: str = ""


def fresh(options: argparse.Namespace) -> PlannedRun:
    """A new run. Raises ValueError with a sentence where it cannot be made."""
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
    """What --set changes of a new run's model, and how to train it: all that can be checked before the text is read."""
    out, preset = Path(options.out), PRESET if options.preset is None else options.preset
    if not _free(out):
        raise ValueError(f"{out} exists already: choose another --out, or add --resume to continue its run")
    if preset not in PRESETS:
        raise ValueError(f"there is no preset called {preset!r}; choose one of {', '.join(PRESETS)}")
    if options.language is not None and options.language not in LANGUAGE_NAMES:
        raise ValueError(f"there is no language called {options.language!r}; choose one of {', '.join(LANGUAGE_NAMES)}")
    if options.seed is not None and options.seed < 0:
        raise ValueError(f"--seed must be at least 0, not {options.seed}")
    model_changes, training_changes = parse_settings(options.set)
    if options.vocab_size is not None and not 2 <= options.vocab_size <= MAX_VOCABULARY:
        raise ValueError(f"--vocab-size must be from 2 to {MAX_VOCABULARY:,}, not {options.vocab_size:,}")
    check_bounds(PRESETS[preset].replace(**model_changes))
    config = _asked(options, recipe_for(preset).replace(**{"seed": options.seed or 0, **training_changes}))
    for name in ("batch_size", "eval_windows"):
        if (getattr(config, name) or 0) > MAX_WINDOWS:
            raise ValueError(
                f"{name} is {getattr(config, name):,}; at most {MAX_WINDOWS:,} windows can be read at once"
            )
    return model_changes, config


def resumed(options: argparse.Namespace) -> PlannedRun:
    """The run that the folder holds, with the changes that are asked for, if they may be made.

    Raises ValueError that names what cannot be changed, and where there is nothing left to do.
    """
    out = Path(options.out)
    checkpoint = load(out)
    about = {"preset": PRESET, "prompt": "", **checkpoint.about}
    if "source" not in about or "training" not in about:
        raise ValueError(f"{out} was not made by this command, so it cannot be resumed")
    begins = not (out / FILE).exists()
    if begins and checkpoint.history.last_step:
        raise ValueError(f"{out} holds a model but not the state of its run, so it cannot be resumed")
    saved = _beginning(checkpoint.config, about) if begins else SavedRun.of(out)
    if options.preset not in (None, about["preset"]):
        raise ValueError(f"this run must continue as it began: --preset was {about['preset']}")
    model_changes, training_changes = parse_settings(options.set)
    if options.seed is not None:
        training_changes.setdefault("seed", options.seed)
    config = _asked(options, saved.training.replace(**training_changes))
    source = _source(options) or about["source"]
    tokenizer = options.tokenizer or about["tokenizer"]
    vocab_size = about["vocab_size"] if options.vocab_size is None else options.vocab_size
    corpus = _corpus(source, tokenizer, vocab_size, about["seed"])
    shape = checkpoint.config.replace(**model_changes)
    saved.changes(shape, config, corpus)
    history = saved.history  # what was judged beside the training stands in the model's record only
    history.judged = [record for record in checkpoint.history.judged if record["step"] <= saved.step]
    over = _why_over(saved, config)
    unwritten = over and not begins and checkpoint.history.last_step < saved.step
    if over and not unwritten:
        raise ValueError(over)
    about |= {"source": source, "training": config.to_dict(), "prompt": _prompt(options, about["prompt"])}
    notice = "Nothing of this run was saved, so it begins again." if begins else ""
    if unwritten:  # the loop then ends at once, with the saved weights
        notice = "This run ended before its model was saved; it is saved now."
    return PlannedRun(corpus, Transformer(shape, seed=about["seed"]), config, about, history, not begins, notice)


def _why_over(saved: SavedRun, config: TrainConfig) -> str:
    """Why a run would end at once, and what to give for it to go on; "" if it can make a step."""
    if saved.step > config.steps:
        return f"this run has made {saved.step:,} steps already: give --steps more than that, or leave it out"
    if saved.step == config.steps:
        return f"all {saved.step:,} steps of this run are done: add --steps with more of them to train on"
    if config.max_seconds is not None and saved.seconds >= config.max_seconds:
        return f"the {config.max_seconds:g} seconds of this run are over: add --set max_seconds=none, or more"
    if 0 < config.patience <= risen_for(saved.history, config.eval_every):
        return (
            f"this run ended because the validation loss rose for {config.patience:,} evaluations. Add --set "
            "patience=0 to train longer, or use its best weights with generate --step best"
        )
    return ""


def _beginning(shape: ModelConfig, about: dict) -> SavedRun:
    """A run of which no step was saved, as it was when it began."""
    return SavedRun(0, 0.0, shape, TrainConfig.from_dict(about["training"]), about["reads"], History(), machine="")


def _free(out: Path) -> bool:
    """Whether a new run may be written there: there is nothing, or a run that was killed before anything was saved."""
    if not out.exists():
        return True
    if not out.is_dir():
        return False
    names = {path.name for path in out.iterdir() if not path.name.startswith(".")}
    if not names or FILE in names:
        return not names
    try:
        held = load(out)
    except CheckpointError:
        return False
    return "source" in held.about and held.history == History()


def _asked(options: argparse.Namespace, config: TrainConfig) -> TrainConfig:
    """The settings with what the options of their own say."""
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


def _corpus(source: dict, tokenizer: str | None, vocab_size: int | None, seed: int) -> Corpus:
    if vocab_size is not None and (not source["text"] or tokenizer not in ("word", "bpe")):
        raise ValueError("--vocab-size bounds what is found in a --text that is read with --tokenizer word or bpe")
    if source["text"]:
        text = read_file(source["text"], max_bytes=MAX_TEXT_BYTES)
        return corpus_from_text(text, tokenizer or "char", name=Path(source["text"]).name, vocab_size=vocab_size)
    if source["language"] != "sentences":
        return corpus_from_language(source["language"], seed=seed, unit=tokenizer or "char")
    if tokenizer not in (None, "word"):
        raise ValueError(f"the twenty sentences are read by word, not by {tokenizer}")
    return corpus_from_sentences()
