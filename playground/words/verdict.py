"""Verdicts on two models in words, claiming no more than was measured."""

from __future__ import annotations

import math

from ..training.verdict import CERTAINTY, StillLearning, Verdict, student_t


def verdict_in_words(verdict: Verdict, equal: str = "equal cost") -> str:
    """A few sentences that claim no more than was measured, and say what could have been seen at all."""
    if math.isinf(verdict.margin):
        return "A single validation window cannot tell the two apart: judge them on more."
    size = f"{abs(verdict.difference):.4f} ± {verdict.margin:.4f} nats"
    sign = "lower" if verdict.difference < 0 else "higher"
    if verdict.seeds == 1:
        return (
            f"One pair names no winner: with this seed MoE is {size} {sign} at {equal}. The ± is a {CERTAINTY} % "
            "interval from the spread between validation windows (Student's t). It does not cover another seed. "
            f"With three seeds a difference shows once it is {_detectable(3):.1f} times their spread, with five "
            f"{_detectable(5):.1f} times."
        )
    if verdict.is_clear:
        better = "the mixture" if verdict.difference < 0 else "the dense model"
        words = f"MoE is {size} {sign} at {equal} over {verdict.seeds} seeds: {better} predicts better."
    else:
        words = f"A tie at {equal} over {verdict.seeds} seeds: MoE is {size} {sign}, no more than chance would make it."
    words += f" The ± is a {CERTAINTY} % interval from the spread between seeds (Student's t)"
    if not verdict.spread:
        return words + "."
    return f"{words}, which is {verdict.spread:.4f}: {verdict.seeds} seeds cannot show less than {verdict.margin:.4f}."


def still_learning_in_words(found: StillLearning | None) -> str:
    """That both models were still learning, where they were."""
    if found is None:
        return ""
    spans = [f"from step {first:,} to step {last:,}" for first, last in found.spans]
    return (
        f"Both were still learning: {spans[0]} the dense model fell by {found.fell[0]:.4f} and "
        f"{'' if spans[0] == spans[1] else f'{spans[1]} '}the mixture by {found.fell[1]:.4f} nats"
        f"{f' (means over {found.seeds} seeds)' if found.seeds > 1 else ''}. This compares how fast they learn at "
        "first, not where they end."
    )


def loss_in_words(loss: float, margin: float) -> str:
    """A loss with its interval, of which nothing lies below 0, as no loss does."""
    if not math.isfinite(margin):
        return f"{loss:.4f}"
    return f"{loss:.4f} ± {margin:.4f}" if loss >= margin else f"{loss:.4f} (0 to {loss + margin:.4f})"


def _detectable(seeds: int) -> float:
    """The smallest difference that so many seeds can show, as a multiple of the spread between them."""
    return student_t(seeds - 1) / math.sqrt(seeds)
