"""Favourites: the tokens that an expert takes far more often than it takes tokens in general."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Lift:
    """One token of an expert's favourites."""

    token: int
    share: float
    """Of the token's visits that go to this expert."""
    lift: float
    """That share divided by the expert's share of all visits: 1 where the expert does not care."""
    count: int
    """How often the token occurs."""


def favourites(experts: np.ndarray, tokens: np.ndarray, expert: int, least: int = 5, most: int = 12) -> list[Lift]:
    """The tokens that an expert takes far more often than it takes tokens in general, the highest lift first.

    `experts` (N, K) and `tokens` (N,); tokens that occur fewer than `least` times say nothing and are left out.
    """
    tokens = np.asarray(tokens)
    experts = np.asarray(experts).reshape(len(tokens), -1)
    taken = (experts == expert).mean(axis=1)  # (N,) share of each token's visits
    base = taken.mean()
    if base == 0:
        return []
    kinds, number, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    shares = np.bincount(number.ravel(), taken) / counts
    found = [
        Lift(int(t), float(s), float(s / base), int(n))
        for t, s, n in zip(kinds, shares, counts)
        if n >= least and s > base
    ]
    return sorted(found, key=lambda lift: (-lift.lift, -lift.count))[:most]
