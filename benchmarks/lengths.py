"""Own texts of ten lengths, read in three ways: what the defaults reach, and the best of other choices in that time.

Time is the processor's, with one thread, so that a busy machine measures the same. Every run keeps its best weights, so
a choice is judged by its lowest validation loss.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from playground.data import Corpus, TextError, corpus_from_text
from playground.model import PRESETS, Transformer
from playground.training import Evaluated, Started, train
from playground.training.recipes import for_own_text, recipe_for

LENGTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
"""Thousands of characters."""


@dataclass(frozen=True)
class Course:
    """One run: what it had reached by when."""

    size: str
    steps: int
    points: tuple[tuple[float, float], ...]
    """(processor seconds of training, validation loss) of each evaluation."""

    @property
    def seconds(self) -> float:
        return self.points[-1][0]

    def best(self, within: float = math.inf) -> float:
        """The lowest loss by then."""
        return min((loss for seconds, loss in self.points if seconds <= 1.02 * within), default=math.inf)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--text", required=True, help="a UTF-8 text file of a million characters")
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS, help="thousands of characters")
    parser.add_argument("--tokenizers", nargs="+", default=("char", "word", "bpe"))
    parser.add_argument("--sizes", nargs="+", default=("tiny", "small"))
    parser.add_argument("--passes", nargs="+", type=float, default=(0.5, 2.0), help="steps tried, times the default's")
    parser.add_argument("--windows", type=int, default=48, help="validation windows")
    parser.add_argument("--seconds", type=float, default=60.0, help="no run is longer than this")


def run(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    torch.set_num_threads(1)
    text = Path(options.text).read_text(encoding="utf-8")
    head = ("characters", "tokens", "different", "default, steps", "loss", "processor s")
    print(f"| {' | '.join((*head, 'best in that time', 'loss', 'behind', 'tried'))} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for thousand in options.lengths:
        for tokenizer in options.tokenizers:
            try:
                corpus = corpus_from_text(text[: 1000 * thousand], tokenizer)
                print(_row(thousand, tokenizer, corpus, options), flush=True)
            except TextError as problem:
                print(f"| {thousand} K, {tokenizer} | {problem} |", flush=True)


def _row(thousand: int, tokenizer: str, corpus: Corpus, options: argparse.Namespace) -> str:
    chosen = for_own_text(len(corpus.train) + len(corpus.val), corpus.vocab_size)
    size, training = chosen.size, chosen.training
    default = course(corpus, size, training.steps, options)
    others = [
        course(corpus, other, max(round(training.steps * times), 10), options, within=default.seconds)
        for other in options.sizes
        for times in (1.0, *options.passes)
        if (other, times) != (size, 1.0)
    ]
    best = min((default, *others), key=lambda c: c.best(default.seconds))
    behind = default.best() - best.best(default.seconds)
    tried = "; ".join(
        f"{c.size} {c.steps}: {c.best(default.seconds):.3f} ({c.best():.3f}, {c.seconds:.0f} s)" for c in others
    )
    cells = (
        f"{thousand} K, {tokenizer}", f"{len(corpus.train):,}", f"{corpus.vocab_size:,}", f"{size}, {training.steps}",
        f"{default.best():.3f}", f"{default.seconds:.1f}", f"{best.size}, {best.steps}",
        f"{best.best(default.seconds):.3f}", f"{behind:.3f}", tried,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def course(corpus: Corpus, size: str, steps: int, options: argparse.Namespace, within: float = math.inf) -> Course:
    """Train so, and note the loss along the way; no longer than `within` or the bound that is asked for."""
    chosen = for_own_text(len(corpus.train) + len(corpus.val), corpus.vocab_size)
    shape = PRESETS[size].replace(vocab_size=corpus.vocab_size, context_length=chosen.context_length)
    model, warmup = Transformer(shape), min(recipe_for(size).warmup_steps, steps // 5)
    training = chosen.training.replace(
        steps=steps, warmup_steps=warmup, eval_every=max(steps // 12, 1), eval_windows=options.windows, patience=0,
        device="cpu",
    )  # fmt: skip
    points, spent, began = [], 0.0, time.process_time()
    for event in train(model, corpus, training):
        if isinstance(event, Started):
            began = time.process_time()
        if isinstance(event, Evaluated):
            points.append((time.process_time() - began, event.val_loss))
            spent = points[-1][0]
            if spent > min(1.02 * within, options.seconds):
                break
    return Course(size, steps, tuple(points))
