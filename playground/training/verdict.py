"""Verdicts: whether one of two models is better, from paired losses, with the uncertainty.

S = seeds, W = validation windows. All differences are mixture minus dense, in nats per token: below zero, the mixture
is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from .losses import WindowLosses

CERTAINTY = 95
ON_ITS_WAY = 0.01
"""A model is still learning if more than this share of its improvement came in the last fifth of its steps."""


@dataclass(frozen=True)
class Verdict:
    """The difference in loss between two models trained in the same way, and its uncertainty."""

    difference: float
    """MoE minus dense, nats per token; below zero, the MoE model is better."""
    margin: float
    """Half the width of the difference's 95 % interval; infinite if there is no estimate."""
    seeds: int
    """How many pairs were trained."""
    spread: float = math.nan
    """Standard deviation of the difference between seeds; NaN with a single seed."""

    @property
    def is_clear(self) -> bool:
        """Whether one of the two may be called better: several seeds, and an interval that leaves out zero."""
        return self.seeds > 1 and abs(self.difference) > self.margin

    @property
    def margin_decides(self) -> bool:
        """Whether the margin belongs beside the difference. One seed's can show a tie, but no winner."""
        return self.seeds > 1 or abs(self.difference) <= self.margin < math.inf


def still_learning(
    steps: Sequence[Sequence[int]], losses: Sequence[Sequence[Sequence[float]]], verdict: Verdict
) -> bool:
    """Whether the dense and the MoE model were both clearly still improving at the end.

    A model was still improving if its loss fell clearly during the last fifth of its steps: by more than the two models
    differ, and by more than `ON_ITS_WAY` of its whole fall. Then their difference is one of speed. It says little about
    where the two would end.

    Args:
        steps: steps of the evaluations, first the dense model's, then the MoE model's; the same for every seed.
        losses: at those steps, first the dense model's for each seed, then the MoE model's. Their means are judged.
    """
    fell, learned = [], []
    for at, by_seed in zip(steps, losses):
        before = [i for i, step in enumerate(at) if step <= 0.8 * at[-1]]
        if not before or len(at) < 3:
            return False
        values = np.mean(by_seed, axis=0)
        fell.append(float(values[before[-1]] - values[-1]))
        learned.append(values[0] - values[-1])
    apart = max(abs(verdict.difference), verdict.margin if math.isfinite(verdict.margin) else 0.0)
    return min(fell) > apart and all(last > ON_ITS_WAY * whole for last, whole in zip(fell, learned))


def judge(dense: Sequence[WindowLosses], moe: Sequence[WindowLosses]) -> Verdict:
    """The verdict on pairs of models, pair i trained from seed i on the same batches, scored on the same windows.

    Several pairs: the mean difference, and a t interval from the spread of the differences. It covers the luck of the
    seed (first weights and batches), but not the choice of windows, which all pairs share. One pair: a t interval from
    the spread between windows. It covers only the choice of windows.
    """
    assert len(dense) == len(moe) >= 1, "losses come in pairs"
    if len(dense) == 1:
        return Verdict(*difference(dense[0], moe[0]), seeds=1)
    found = np.array([m.mean - d.mean for d, m in zip(dense, moe)])
    return Verdict(*map(float, mean_interval(found)), len(found), float(found.std(ddof=1)))


def difference(one: WindowLosses, other: WindowLosses) -> tuple[float, float]:
    """`other` minus `one` in nats per token, on the same windows, and half the width of the 95 % interval.

    The interval is Student's t over the windows' own differences. Windows may differ in length, so it is that of a
    ratio of sums (Cochran 1977, section 6.3). It is infinite for a single window, which says nothing of the spread.
    """
    n, tokens, found = len(one.total), one.tokens.sum().clamp(min=1).item(), other.mean - one.mean
    if n < 2:
        return found, math.inf
    residuals = (other.total - one.total).double() - found * one.tokens
    return found, student_t(n - 1) * (residuals.square().sum() / (n - 1) * n).sqrt().item() / tokens


def mean_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of values (N, …) and half the widths of their 95 % intervals (…), Student's t; NaNs are left out.

    A half-width is infinite if only one value is left, which says nothing of the spread. The mean is NaN if none is
    left.
    """
    values = np.asarray(values, dtype=np.float64)
    counts = np.isfinite(values).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, axis=0) / counts
        spread = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / (counts - 1))
        factors = np.vectorize(lambda n: student_t(int(n) - 1) if n > 1 else math.inf, otypes=[float])(counts)
        return mean, np.where(counts > 1, factors * spread / np.sqrt(counts), math.inf)


@cache
def student_t(freedom: int, inside_share: float = CERTAINTY / 100) -> float:
    """The factor on a standard error that makes a 95 % interval, at this many degrees of freedom; to 1e-12.

    `inside_share` sets another share than 95 %, as for several intervals that must hold together.

    The share of Student's distribution within ± t is a finite sum for whole degrees of freedom (Abramowitz and Stegun
    1964, 26.7.3 and 26.7.4). It grows with t, so t is found by bisection.
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
