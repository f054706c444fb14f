"""Verdicts: whether one of two models is better, from paired losses, with the uncertainty said in words.

S = seeds, W = validation windows. All differences are mixture minus dense, in nats per token: below zero the mixture is
better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

from .losses import WindowLosses

CERTAINTY = 95


@dataclass(frozen=True)
class Verdict:
    """The difference of two models trained alike, and how far it may be off."""

    difference: float
    """Mixture minus dense, nats per token; below zero the mixture is better."""
    margin: float
    """Half the width of the 95 % interval around it; infinite where nothing can be said."""
    seeds: int
    """How many pairs were trained."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return abs(self.difference) > self.margin

    def in_words(self, equal: str = "equal cost") -> str:
        """One or two sentences that claim no more than was measured."""
        over = f"over {self.seeds} seeds" if self.seeds > 1 else "with one seed"
        if math.isinf(self.margin):
            return "A single validation window cannot tell the two apart: judge them on more."
        size = f"{abs(self.difference):.4f} ± {self.margin:.4f} nats"
        if self.is_clear:
            sign, better = ("lower", "the mixture") if self.difference < 0 else ("higher", "the dense model")
            words = f"MoE {size} {sign} at {equal} {over}: {better} predicts better."
        else:
            sign = "lower" if self.difference < 0 else "higher"
            words = f"No difference that can be told from chance at {equal} {over}: MoE {size} {sign}."
        if self.seeds == 1:
            return (
                f"{words} The ± is a {CERTAINTY} % interval from the spread between validation windows alone "
                "(Student's t): it does not know how far another seed would land, so train more seeds before you "
                "believe it."
            )
        return f"{words} The ± is a {CERTAINTY} % interval from the spread between seeds (Student's t)."


def judge(dense: Sequence[WindowLosses], moe: Sequence[WindowLosses]) -> Verdict:
    """The verdict on pairs of models, pair i trained from seed i on the same batches, scored on the same windows.

    Several pairs: the mean difference and a t interval from the differences' own spread, which covers the luck of a
    seed (first weights and batches), not the choice of windows, which all pairs share. One pair: a t interval from the
    spread between windows, which covers only that choice.
    """
    assert len(dense) == len(moe) >= 1, "losses come in pairs"
    if len(dense) == 1:
        return Verdict(*difference(dense[0], moe[0]), seeds=1)
    found = torch.tensor([m.mean - d.mean for d, m in zip(dense, moe)], dtype=torch.float64)
    standard_error = found.std().item() / math.sqrt(len(found))
    return Verdict(found.mean().item(), student_t(len(found) - 1) * standard_error, seeds=len(found))


def difference(one: WindowLosses, other: WindowLosses) -> tuple[float, float]:
    """Other minus one in nats per token, on the same windows, and half the width of its 95 % interval.

    The interval is Student's t over the windows' own differences, as of a ratio of sums (Cochran 1977, section 6.3),
    since windows may differ in length. Infinite for a single window, which cannot tell.
    """
    n, tokens, found = len(one.total), one.tokens.sum().clamp(min=1).item(), other.mean - one.mean
    if n < 2:
        return found, math.inf
    residuals = (other.total - one.total).double() - found * one.tokens
    return found, student_t(n - 1) * (residuals.square().sum() / (n - 1) * n).sqrt().item() / tokens


@cache
def student_t(freedom: int, inside_share: float = CERTAINTY / 100) -> float:
    """The factor on a standard error that makes a 95 % interval, at this many degrees of freedom; to 1e-12.

    `inside_share` makes another than 95 %, as for several intervals that are to hold together.

    The share of Student's distribution within ± t is a finite sum for whole degrees of freedom (Abramowitz and Stegun
    1964, 26.7.3 and 26.7.4), which grows with t: the point is found by halving.
    """

    def inside(t: float) -> float:
        angle = math.atan(t / math.sqrt(freedom))
        odd, square = freedom % 2, math.cos(angle) ** 2
        term = total = math.cos(angle) if odd else 1.0
        for k in range(2 + odd, freedom - 1, 2):
            term *= square * (k - 1) / k
            total += term
        total = math.sin(angle) * (total if freedom > 1 else 0.0)
        return (angle + total) * 2 / math.pi if odd else total

    low, high = 0.0, 1.0
    while inside(high) < inside_share:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < inside_share else (low, middle)
    return (low + high) / 2
