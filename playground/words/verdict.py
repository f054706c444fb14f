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
            f"One pair, so no winner: with this seed MoE {size} {sign} at {equal}. The ± is a {CERTAINTY} % "
            "interval from the spread between validation windows alone (Student's t): it does not know how far "
            f"another seed would land. Train more: with three seeds a difference has to be {_detectable(3):.1f} "
            f"times their spread to be told from chance, with five {_detectable(5):.1f} times."
        )
    if verdict.is_clear:
        better = "the mixture" if verdict.difference < 0 else "the dense model"
        words = f"MoE {size} {sign} at {equal} over {verdict.seeds} seeds: {better} predicts better."
    else:
        words = f"No difference that can be told from chance at {equal} over {verdict.seeds} seeds: MoE {size} {sign}."
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
        "first, not what they come to."
    )


def loss_in_words(loss: float, margin: float) -> str:
    """A loss with its interval, of which nothing lies below 0, as no loss does."""
    if not math.isfinite(margin):
        return f"{loss:.4f}"
    return f"{loss:.4f} ± {margin:.4f}" if loss >= margin else f"{loss:.4f} (0 to {loss + margin:.4f})"


def _detectable(seeds: int) -> float:
    """The smallest difference that so many seeds can show, as a multiple of the spread between them."""
    return student_t(seeds - 1) / math.sqrt(seeds)
