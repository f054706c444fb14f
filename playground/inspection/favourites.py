"""Favourites: the tokens that an expert gets more often than its share of all tokens, and whether training caused that.

N = tokens of the text, K = experts per token, E = experts, V = vocabulary, R = routers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..model import Transformer, trace
from .routing import AT_ONCE

LEAST = 1.01
"""Lifts that may be no higher than this are left out: rounded, they would read as no lift at all."""
NEARLY = 0.9
"""This share of an expert's tokens counts as nearly all of them."""
RANDOM_ROUTERS = 19
"""How many random routers: chance beats them all in one of twenty cases, a test at 5 % (Barnard 1963)."""


@dataclass(frozen=True)
class Lift:
    """One of an expert's favourite tokens."""

    token: int
    taken: int
    """How often the token goes to this expert."""
    count: int
    """How often the token occurs."""
    lift: float
    """The share of its occurrences that go there ÷ the share of all tokens that do: 1 for a token like all others."""


@dataclass(frozen=True)
class Sorting:
    """How much knowing the token helps to guess its expert: shares of all tokens, from 0 to 1."""

    learned: float
    random: float
    """The highest share that a random router reaches on the same stream."""

    @property
    def is_clear(self) -> bool:
        """Whether the router sorts tokens more than every random router."""
        return self.learned > self.random


def favourites(experts: np.ndarray, tokens: np.ndarray, n_experts: int) -> list[list[Lift]]:
    """For each expert, the tokens that it gets more often than luck explains, the highest lift first,
    and among equal ones the most frequent.

    Tested by the exact binomial tail of each share, at 5 % for all pairs of token and expert together (Bonferroni).
    `experts` (N, K) and `tokens` (N,).
    """
    experts = experts.reshape(len(tokens), -1)
    kinds, number, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    chance, by_expert = 0.05 / (len(kinds) * n_experts), []
    for expert in range(n_experts):
        visits = (experts == expert).any(axis=1)  # (N,)
        base, taken = float(visits.mean()), np.bincount(number.ravel(), visits).astype(int)
        lifts = []
        for token, hits, count in zip(kinds.tolist(), taken.tolist(), counts.tolist()):
            usual = LEAST * base
            if hits > usual * count and _tail(hits, count, usual) < chance:
                lifts.append(Lift(token, hits, count, hits / count / base))
        by_expert.append(sorted(lifts, key=lambda lift: (-lift.lift, -lift.taken)))
    return by_expert


def own_kind(found: list[list[Lift]], visits: list[int]) -> tuple[int, list[Lift]] | None:
    """The expert with most favourites among those that take nearly all of theirs, and little else; the most frequent
    favourites first. None if there is no such expert.

    `found` and `visits` (E,) hold each expert's favourites, and how many tokens it gets.
    """
    kinds = []
    for expert, (lifts, visited) in enumerate(zip(found, visits)):
        taken, there = sum(lift.taken for lift in lifts), sum(lift.count for lift in lifts)
        if taken and taken >= NEARLY * max(visited, there):
            kinds.append((expert, sorted(lifts, key=lambda lift: -lift.taken)))
    return max(kinds, key=lambda kind: len(kind[1]), default=None)


@torch.no_grad()
def sorting(model: Transformer, ids: torch.Tensor, layer: int, first: np.ndarray) -> Sorting:
    """Compare a layer's first choices (N,) on ids (B, T), N = B · T, with those of random routers."""
    E, generator = model.config.n_experts, torch.Generator().manual_seed(0)
    read = [trace(model, some, names=["ff_in"])["ff_in", layer].cpu() for some in ids.split(AT_ONCE)]
    stream = torch.cat(read).flatten(0, 1)  # (N, d)
    scores = stream @ torch.randn(stream.shape[1], RANDOM_ROUTERS * E, generator=generator)
    random = scores.unflatten(1, (RANDOM_ROUTERS, E)).argmax(dim=-1).T.numpy()  # (R, N)
    tokens = ids.flatten().numpy()
    return Sorting(sorted_share(first, tokens, E), max(sorted_share(each, tokens, E) for each in random))


def sorted_share(first: np.ndarray, tokens: np.ndarray, n_experts: int) -> float:
    """By how much guessing each token's most frequent expert beats one guess for all, in share of right guesses.

    `first` (N,) experts and `tokens` (N,).
    """
    kinds, number = np.unique(tokens, return_inverse=True)
    table = np.bincount(number.ravel() * n_experts + first, minlength=len(kinds) * n_experts)
    table = table.reshape(len(kinds), n_experts)  # (V, E)
    return float(table.max(axis=1).sum() - table.sum(axis=0).max()) / len(first)


def _tail(hits: int, count: int, share: float) -> float:
    """The chance of at least `hits` hits in `count` trials, each a hit with chance `share` < 1."""
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count + 1)))))
    k = np.arange(hits, count + 1)
    ways = log_factorial[count] - log_factorial[k] - log_factorial[count - k]
    return float(np.exp(ways + k * np.log(share) + (count - k) * np.log1p(-share)).sum())
