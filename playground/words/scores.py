"""Scores of models on a text: bits per byte, and which of two models predicts it better."""

from __future__ import annotations

from ..studies.scores import Score
from ..training.verdict import CERTAINTY
from .numbers import signed
from .result import Result


def score_result(score: Score, name: str, text: str) -> Result:
    """How well a model predicts a text."""
    return Result(
        f"{name}: {score.bits_per_byte:.4f} ± {score.margin:.4f} bits per byte of {text}.",
        f"Loss {score.loss:.4f} nats per token, perplexity {score.perplexity:.4g}.",
        f"{_judged_on(score)}{unknown_in_words(score, name)}",
    )


def comparison_result(one: Score, other: Score, names: tuple[str, str]) -> Result:
    """Which of two models predicts the same text better, in bits per byte; `names` in their order."""
    difference, margin = one.minus(other)
    clear, better = abs(difference) > margin, names[difference > 0]
    return Result(
        f"{better} predicts this text better." if clear else "A tie: the two predict this text equally well.",
        f"{names[0]}: {one.bits_per_byte:.4f} bits per byte; {names[1]}: {other.bits_per_byte:.4f}; difference "
        f"{signed(difference, 4, plus=True)} ± {margin:.4f}.",
        _judged_on(one) + "".join(map(unknown_in_words, (one, other), names)),
    )


def unknown_in_words(score: Score, name: str) -> str:
    """How much of a text a model cannot read, if there is anything; after other sentences."""
    if not score.unknown:
        return ""
    tokens = f"{score.unknown:,} of the tokens"
    return f" The model {name} does not know {tokens}, so its score looks too good."


def _judged_on(score: Score) -> str:
    parts = len(score.total)
    return f"The ± is a {CERTAINTY} % interval over {parts} parts of the text, {sum(score.bytes):,} bytes in all."
