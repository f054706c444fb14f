"""Verdicts: whether one of two models is better, from paired losses, with the uncertainty said in words.

S = seeds, W = validation windows. All differences are mixture minus dense, in nats per token: below zero the mixture is
better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .losses import WindowLosses

RESAMPLES = 4000
# two-sided 95 % points of Student's t distribution, by degrees of freedom 1 … 15; beyond, 2.1 is close enough
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
CERTAINTY = 95


@dataclass(frozen=True)
class Verdict:
    """The difference of two models trained alike, and how far it may be off."""

    difference: float
    """Mixture minus dense, nats per token; below zero the mixture is better."""
    margin: float
    """Half the width of the 95 % interval around it."""
    seeds: int
    """How many pairs were trained."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return abs(self.difference) > self.margin

    def in_words(self, equal: str = "equal cost") -> str:
        """One or two sentences that claim no more than was measured."""
        over = f"over {self.seeds} seeds" if self.seeds > 1 else "with one seed"
        size = f"{abs(self.difference):.4f} ± {self.margin:.4f} nats"
        if self.is_clear:
            sign, better = ("lower", "the mixture") if self.difference < 0 else ("higher", "the dense model")
            words = f"MoE {size} {sign} at {equal} {over}: {better} predicts better."
        else:
            sign = "lower" if self.difference < 0 else "higher"
            words = f"No difference that can be told from chance at {equal} {over}: MoE {size} {sign}."
        if self.seeds == 1:
            return (
                f"{words} The ± comes from resampling the validation windows alone: it does not know how far another "
                "seed would land, so train more seeds before you believe it."
            )
        return f"{words} The ± is a {CERTAINTY} % interval from the spread between seeds (Student's t)."


def judge(dense: Sequence[WindowLosses], moe: Sequence[WindowLosses], *, seed: int = 0) -> Verdict:
    """The verdict on pairs of models, pair i trained from seed i on the same batches, scored on the same windows.

    Several pairs: the mean difference and a t interval from the differences' own spread, which covers the luck of a
    seed (first weights and batches), not the choice of windows, which all pairs share. One pair: a bootstrap over
    windows (Efron 1979), both models resampled together, which covers only that choice.
    """
    assert len(dense) == len(moe) >= 1, "losses come in pairs"
    if len(dense) == 1:
        return Verdict(*_bootstrap(dense[0], moe[0], seed), seeds=1)
    differences = torch.tensor([m.mean - d.mean for d, m in zip(dense, moe)], dtype=torch.float64)
    n = len(differences)
    standard_error = differences.std().item() / math.sqrt(n)
    return Verdict(differences.mean().item(), student_t(n - 1) * standard_error, seeds=n)


def student_t(freedom: int) -> float:
    """The factor on a standard error that makes a 95 % interval, at this many degrees of freedom."""
    return _T95[freedom - 1] if freedom <= len(_T95) else 2.1


def _bootstrap(dense: WindowLosses, moe: WindowLosses, seed: int) -> tuple[float, float]:
    """Difference in nats per token and half its 95 % interval, windows drawn again with replacement."""
    W = len(dense.total)
    rng = torch.Generator().manual_seed(seed)
    difference = (moe.total - dense.total).double()
    drawn = torch.randint(W, (RESAMPLES, W), generator=rng)
    means = difference[drawn].sum(dim=1) / dense.tokens.double()[drawn].sum(dim=1).clamp(min=1)
    low, high = means.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return moe.mean - dense.mean, (high - low) / 2
