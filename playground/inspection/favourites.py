"""Favourites: the tokens that an expert takes more often than it takes tokens in general, beyond what luck explains.

N = tokens of the text, K = experts that each visits.
"""

from __future__ import annotations

from collections.abc import Callable
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
    least: float
    """The lowest lift that these counts leave, with 95 % certainty for all pairs of token and expert together."""


def favourites(experts: np.ndarray, tokens: np.ndarray, n_experts: int, most: int = 12) -> tuple[list[list[Lift]], int]:
    """By expert, the tokens that it takes more often than luck explains, the highest sure lift first.

    By the exact interval of each share (Clopper and Pearson 1934), whose certainty is divided among all pairs of token
    and expert that are looked at (Bonferroni): how many those are is told, too. `experts` (N, K) and `tokens` (N,).
    """
    tokens = np.asarray(tokens)
    experts = np.asarray(experts).reshape(len(tokens), -1)
    kinds, number, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    looked, found = len(kinds) * n_experts, []
    for expert in range(n_experts):
        visits = (experts == expert).any(axis=1)  # (N,)
        base, taken = float(visits.mean()), np.bincount(number.ravel(), visits).astype(int)
        chance, liked = 0.05 / looked, []
        for token, hits, count in zip(kinds.tolist(), taken.tolist(), counts.tolist()):
            # so many hits in a row are a part of the tail, and spare most of the sums
            if LEAST * base < hits / count and base**hits < chance and _tail(hits, count)(LEAST * base) < chance:
                liked.append(Lift(token, hits, count, hits / count / base, lowest_share(hits, count, chance) / base))
        found.append(sorted(liked, key=lambda lift: -lift.least)[:most])
    return found, looked


def lowest_share(hits: int, count: int, chance: float) -> float:
    """The share below which so many hits among `count` would come with less than this chance (Clopper and Pearson)."""
    tail, low, high = _tail(hits, count), 0.0, hits / count
    for _ in range(40 if hits else 0):
        share = (low + high) / 2
        low, high = (low, share) if tail(share) > chance else (share, high)
    return low


def _tail(hits: int, count: int) -> Callable[[float], float]:
    """How often at least `hits` of `count` come true, as a function of the share that does in general, below 1."""
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count + 1)))))
    k = np.arange(hits, count + 1)
    ways = factorials[count] - factorials[k] - factorials[count - k]
    return lambda share: float(np.exp(ways + k * np.log(share) + (count - k) * np.log1p(-share)).sum())
