"""Favourites: the tokens that an expert takes more often than it takes tokens in general, beyond what luck explains.

N = tokens of the text, K = experts that each visits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST = 1.01
"""Lifts that may be no higher are left out: they would be written as no lift at all."""


@dataclass(frozen=True)
class Lift:
    """One token of an expert's favourites."""

    token: int
    taken: int
    """How often it visits this expert."""
    count: int
    """How often it occurs."""
    lift: float
    """The share of its occurrences that visit, divided by that of all tokens: 1 where the expert does not care."""


def favourites(experts: np.ndarray, tokens: np.ndarray, n_experts: int, most: int = 12) -> tuple[list[list[Lift]], int]:
    """By expert, the tokens that it takes more often than luck explains, the highest lift first.

    By the exact binomial tail of each share, at 5 % for all pairs of token and expert together (Bonferroni); the number
    of pairs comes second. `experts` (N, K) and `tokens` (N,).
    """
    experts = experts.reshape(len(tokens), -1)
    kinds, number, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    pairs, by_expert = len(kinds) * n_experts, []
    chance = 0.05 / pairs
    for expert in range(n_experts):
        visits = (experts == expert).any(axis=1)  # (N,)
        base, taken = float(visits.mean()), np.bincount(number.ravel(), visits).astype(int)
        lifts = []
        for token, hits, count in zip(kinds.tolist(), taken.tolist(), counts.tolist()):
            usual = LEAST * base
            if hits > usual * count and _tail(hits, count, usual) < chance:
                lifts.append(Lift(token, hits, count, hits / count / base))
        by_expert.append(sorted(lifts, key=lambda lift: -lift.lift)[:most])
    return by_expert, pairs


def _tail(hits: int, count: int, share: float) -> float:
    """The chance of at least `hits` among `count`, where each comes with the chance `share`, below 1."""
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count + 1)))))
    k = np.arange(hits, count + 1)
    ways = log_factorial[count] - log_factorial[k] - log_factorial[count - k]
    return float(np.exp(ways + k * np.log(share) + (count - k) * np.log1p(-share)).sum())
