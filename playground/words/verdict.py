"""Verdicts on two models: no more than was measured."""

from __future__ import annotations

import math

from ..training.verdict import CERTAINTY, Verdict
from .result import Result
from .training import in_steps


def verdict_result(verdict: Verdict, steps: int, *, active: bool = False) -> Result:
    """The better model after so many steps, and the evidence. `active`: more pairs are in training."""
    far, better = " so far" * active, "MoE" if verdict.difference < 0 else "The dense model"
    if math.isinf(verdict.margin):
        return Result(
            "One window can't settle it.", details="One validation window is not enough to compare two models."
        )
    tie = f"No difference visible {'so far' if active else f'after {in_steps(steps)}'}."
    spread = f" A single seed lands about {verdict.spread:.4f} from their mean." if verdict.spread else ""
    interval = f"is a {CERTAINTY} % interval (Student's t) from the spread between"
    if verdict.seeds == 1:
        return Result(
            tie if verdict.margin_decides else f"{better} is ahead{far}, with one seed.",
            details=f"± {verdict.margin:.4f} {interval} validation windows. It does not cover other seeds, so one pair "
            "cannot name a winner.",
        )
    return Result(
        f"{better} predicts better{far}." if verdict.is_clear else tie,
        details=f"The ± {interval} {verdict.seeds} seeds.{spread}",
    )


def loss_in_words(loss: float, margin: float) -> str:
    """A loss with its interval, cut off at 0."""
    if not math.isfinite(margin):
        return f"{loss:.4f}"
    return f"{loss:.4f} ± {margin:.4f}" if loss >= margin else f"{loss:.4f} (0 to {loss + margin:.4f})"
