"""Train a model on a text file or a synthetic language and save it as a checkpoint folder."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from ..data import (
    LANGUAGES,
    Corpus,
    corpus_from_language,
    corpus_from_sentences,
    corpus_from_text,
    read_file,
)
from ..model import PRESETS, Transformer
from ..storage import load, save
from ..training import History, Noticed, TrainConfig, TrainEvent, train, workers
from ..training.autosave import FILE as RESUME_FILE
from ..training.distributed import is_first
from ..training.recipes import recipe_for
from . import remote
from .settings import parse_settings

EXIT_CODES = {"stopped": 130, "lost": 1}  # of ends after which there is something to resume
TOKENIZERS = ("char", "word", "bpe", "gpt2", "cl100k_base", "o200k_base")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `train`."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--text", metavar="FILE", help="a UTF-8 text file to learn")
    source.add_argument("--language", metavar="NAME", help=f"a synthetic language: {', '.join(LANGUAGES)}, sentences")
    parser.add_argument("--tokenizer", choices=TOKENIZERS, default=None, help="what a token is (default: char)")
    parser.add_argument("--vocab-size", type=int, default=None, help="most tokens of a word or bpe tokenizer")
    parser.add_argument("--preset", default="small", help=f"where to start from: {', '.join(PRESETS)} (default: small)")
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="change settings")
    parser.add_argument("--steps", type=int, default=None, help="optimizer steps")
    parser.add_argument("--seed", type=int, default=0, help="of the weights, the batches and a language's text")
    parser.add_argument("--prompt", default="", help="what the samples during training continue")
    parser.add_argument("--out", metavar="DIR", required=True, help="the checkpoint folder to write")
    parser.add_argument("--resume", action="store_true", help="go on with the run that DIR holds")
    parser.add_argument("--json", action="store_true", help="one event per line on standard output, nothing else")
    remote.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Train, showing progress, and save. Interrupted, it saves what was learned and returns 130."""
    if options.on == "hf-jobs":
        return remote.run(options, check=lambda: _settings(options))
    out = Path(options.out)
    corpus, model, config, about = _resumed(out, options) if options.resume else _fresh(out, options)
    interrupted = False

    def stop(*_) -> None:
        nonlocal interrupted
        interrupted = True

    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, stop)
    with workers(config.device) as together:
        events = train(
            model, corpus, config,
            folder=out, resume=options.resume, should_stop=lambda: interrupted, workers=together,
        )  # fmt: skip
        if not together.first:
            return _follow(events, out)
        reason = _watch(events, model, corpus, config, about, options)
    if reason not in EXIT_CODES:
        (out / RESUME_FILE).unlink(missing_ok=True)
    if not options.json:
        again = f"; --resume --out {out} goes on" if reason in EXIT_CODES else ""
        print(f"Saved to {out}{again}. Talk to it: python -m playground generate {out} --prompt …")
    return EXIT_CODES.get(reason, 0)


def _watch(
    events: Iterator[TrainEvent],
    model: Transformer,
    corpus: Corpus,
    config: TrainConfig,
    about: dict,
    options: argparse.Namespace,
) -> str:
    """Show the events, save what is learned, and say why the run ended."""
    out, tokenizer = Path(options.out), corpus.tokenizer
    if not options.resume:
        save(out, model, tokenizer, name=out.name, about=about)
    about["ladder"] = corpus.ladder(model.config.context_length, config.eval_windows).to_dict()
    history = load(out).history if options.resume else History()
    show = _json_line if options.json else _Progress(config.steps, corpus, about["ladder"]).show
    if warning := corpus.warning():
        show(Noticed(0, 0.0, warning))
    for event in events:
        history.add(event)
        show(event)
        if event.event == "saved":  # curves and weights of this moment, so that a kill loses little
            save(out, model, tokenizer, history, name=out.name, about=about)
    save(out, model, tokenizer, history, name=out.name, about=about)
    return event.reason


def _follow(events: Iterator[TrainEvent], out: Path) -> int:
    """Train as one of several processes, in silence; the first one tells and saves."""
    for event in events:
        if event.event == "finished" and event.reason == "lost" and os.environ["LOCAL_RANK"] == "1":
            print(f"{event.message} If it was the first process: --resume --out {out} goes on.", file=sys.stderr)
    return EXIT_CODES.get(event.reason, 0)


def _fresh(out: Path, options: argparse.Namespace) -> tuple[Corpus, Transformer, TrainConfig, dict]:
    model_changes, config = _settings(options)
    source = {"text": str(Path(options.text).resolve()) if options.text else None, "language": options.language}
    if not options.text and not options.language:
        source["language"] = "stories"
    corpus = _corpus(source, options.tokenizer, options.vocab_size, options.seed)
    model_changes.setdefault("vocab_size", corpus.vocab_size)
    model = Transformer(PRESETS[options.preset].config.replace(**model_changes), seed=options.seed)
    about = {
        "corpus": corpus.name,
        "source": source,
        "tokenizer": options.tokenizer,
        "vocab_size": options.vocab_size,
        "seed": options.seed,
        "text_sha256": corpus.sha256,
        "preset": options.preset,
        "training": config.to_dict(),
        "prompt": options.prompt or (corpus.language.prompt if corpus.language else ""),
    }
    return corpus, model, config, about


def _settings(options: argparse.Namespace) -> tuple[dict, TrainConfig]:
    """What --set changes of the model, and how to train; everything that can be checked before the text is read."""
    out = Path(options.out)
    if is_first() and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} exists already: choose another --out, or add --resume to go on with its run")
    if options.preset not in PRESETS:
        raise ValueError(f"there is no preset called {options.preset!r}; choose one of {', '.join(PRESETS)}")
    if options.seed < 0:
        raise ValueError(f"--seed must be at least 0, not {options.seed}")
    model_changes, training_changes = parse_settings(options.set)
    PRESETS[options.preset].config.replace(**model_changes)
    config = recipe_for(options.preset).replace(seed=options.seed, **training_changes)
    if options.steps is not None:
        config = config.replace(steps=options.steps)
    if options.prompt:
        config = config.replace(sample_prompt=options.prompt, sample_every=config.sample_every or config.eval_every)
    return model_changes, config


def _resumed(out: Path, options: argparse.Namespace) -> tuple[Corpus, Transformer, TrainConfig, dict]:
    checkpoint = load(out)
    about = checkpoint.about
    if "source" not in about or "training" not in about:
        raise ValueError(f"{out} was not made by this command, so it cannot be resumed")
    config = TrainConfig.from_dict(about["training"])
    if options.steps is not None:
        config = config.replace(steps=options.steps)
    corpus = _corpus(about["source"], about["tokenizer"], about["vocab_size"], about["seed"])
    if corpus.sha256 != about["text_sha256"]:
        raise ValueError(f"{about['source']['text']} has changed since the run began: other text, other run")
    return corpus, Transformer(checkpoint.config), config, about


def _corpus(source: dict, tokenizer: str | None, vocab_size: int | None, seed: int) -> Corpus:
    if source["text"]:
        text = read_file(source["text"])
        return corpus_from_text(text, tokenizer or "char", name=Path(source["text"]).name, vocab_size=vocab_size)
    if source["language"] == "sentences":
        return corpus_from_sentences()
    return corpus_from_language(source["language"], seed=seed, unit=tokenizer or "char")


def _json_line(event: TrainEvent) -> None:
    print(json.dumps(event.to_dict()), flush=True)


class _Progress:
    """A status line that rewrites itself on a terminal; elsewhere a line per evaluation."""

    def __init__(self, steps: int, corpus: Corpus, ladder: dict):
        self.steps, self.live = steps, sys.stderr.isatty()
        rungs = ", ".join(f"{name} {loss:.4f}" for name, loss in ladder.items() if loss is not None)
        print(
            f"{corpus.name}: {len(corpus.train):,} tokens to learn, {corpus.vocab_size:,} different. Ladder: {rungs}."
        )

    def show(self, event: TrainEvent) -> None:
        if event.event == "started":
            print(f"{event.n_parameters:,} parameters on {event.device} in {event.precision}.")
        elif event.event == "stepped" and self.live:
            done = int(30 * event.step / self.steps)
            bar = "█" * done + "░" * (30 - done)
            line = (
                f"\r{bar} {event.step:,}/{self.steps:,}  loss {event.loss:.4f}  "
                f"{event.tokens_per_second:,.0f} tokens/s  {event.time_left:.0f} s left "
            )
            print(line, end="", file=sys.stderr, flush=True)
        elif event.event in ("evaluated", "sampled", "noticed", "finished"):
            if self.live:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
            print(self._words(event), flush=True)

    @staticmethod
    def _words(event: TrainEvent) -> str:
        if event.event == "evaluated":
            return f"step {event.step:>6,}  train {event.train_loss:.4f}  validation {event.val_loss:.4f}"
        if event.event == "sampled":
            return "  | " + (event.prompt + event.text).replace("\n", "\n  | ")
        return event.message
