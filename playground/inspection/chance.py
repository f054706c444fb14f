"""Chance: the bits that experts would tell of who speaks if they knew nothing of it, however long they persist.

N = tokens, M = sentences, R = shifts, L = layers, E = experts, S = sources.

A speaker stays for several sentences, and a router may stay with an expert just as long: two such series agree by
luck far more often than independent draws do. So the labels are not shuffled but shifted along the text as around a
ring, by whole sentences (against “nonsense correlations” of two slow series, as Harris 2020): both series keep all
their habits, and only what ties them to each other is gone. Where something is to be told beyond the token itself, each
sentence with the token lends its speaker to another one with it: to one that the shift makes this speaker's, as long as
there are such, else to one nearby. Then what the token gives away by itself stays as it is, a sentence's tokens agree
on who speaks as far as they can, and only the rest is gone.

Where the largest of several layers is looked at, so is the largest in every shift (Westfall and Young 1993).

Routers that know nothing exceed the 95th percentile in 2 to 8 of 100 texts, however long they persist, and the best of
four layers in 0 to 9, where luck alone is worth 2 and 5 (`python -m benchmarks chance`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .information import mutual_information

SHIFTS = 199
"""With the text as it is they make 200, so that a share of a twentieth can be met exactly."""
NEAR = 8
"""Sentences within which those of other speakers lend once only. Found by trying: without it the tokens of a rare word
share a lender and seem to persist longer than they do; where each lends once some come from too far."""


@dataclass(frozen=True)
class Chance:
    """What no knowledge at all would give, the largest over all layers, and how one layer compares."""

    mean: float
    """Bits, over all shifts."""
    p95: float
    """Bits above which p is 5 % or less; infinite where the text has too few sentences to tell."""
    p: float
    """(1 + shifts that reach the layer's bits) / (1 + shifts): Davison and Hinkley 1997, section 4.2."""


def chance(found: list[float], by_shift: np.ndarray) -> list[Chance]:
    """How each layer's bits compare with the largest of all layers' bits in every shift (R, L)."""
    rounds = len(by_shift)
    if rounds < 19:  # too few sentences to say that something happens once in twenty times
        return [Chance(math.nan, math.inf, 1.0)] * len(found)
    largest = np.sort(by_shift.max(axis=1))
    mean, p95 = float(largest.mean()), float(largest[-((rounds + 1) // 20)])  # more than it makes p 5 % or less
    return [Chance(mean, p95, float(1 + (largest >= bits - 1e-12).sum()) / (1 + rounds)) for bits in found]


def information_by_shift(
    experts: np.ndarray, shifted: np.ndarray, n_experts: int, n_sources: int, given: np.ndarray | None = None
) -> np.ndarray:
    """Bits (R, L) that first choices (L, N) tell of shifted sources (R, N), beyond `given` (N,) if there is any."""
    groups, group = (1, 0) if given is None else _numbered(given)
    cells = (group * n_experts + experts) * n_sources  # (L, N)
    shape = (groups, n_experts, n_sources)
    return np.array(
        [[mutual_information(np.bincount(cell + sources, minlength=np.prod(shape)).reshape(shape)) for cell in cells]
         for sources in shifted]
    )  # fmt: skip


def shifted_sources(
    sources: np.ndarray, sentences: np.ndarray, given: np.ndarray | None = None, shifts: int = SHIFTS, seed: int = 0
) -> np.ndarray:
    """The sources (N,) of sentences (N,) shifted by random numbers of sentences (R, N), R being at most `shifts`.

    No shift is drawn twice or is shorter than a twentieth of the text. With `given` (N,), such as the tokens
    themselves, each token's source comes from a sentence that has the same token in it, and is the one that the shift
    would give as far as there are such.
    """
    _, first, sentence = np.unique(sentences, return_index=True, return_inverse=True)
    labels, M = sources[first], len(first)
    least = max(M // 20, 1)
    offsets = np.random.default_rng(seed).permutation(np.arange(least, M - least + 1))[:shifts]
    if given is None:
        found = [labels[(sentence + offset) % M] for offset in offsets]
    else:
        pairs, pair = np.unique(_numbered(given)[1] * M + sentence, return_inverse=True)
        found = [labels[pairs[_donors(pairs, labels, int(offset))] % M][pair] for offset in offsets]
    return np.array(found, dtype=labels.dtype).reshape(len(offsets), len(sources))


def _donors(pairs: np.ndarray, labels: np.ndarray, offset: int) -> np.ndarray:
    """For each pair of a token and a sentence (token · M + sentence, sorted), the pair that lends its source.

    Those of the speaker (labels, (M,)) who is looked for lend first, each once, the closest first; then those within
    `NEAR` of where they are looked for, each once; what is left takes the nearest.
    """
    M, S = len(labels), labels.max() + 1
    token, sentence = np.divmod(pairs, M)
    place = (sentence + offset) % M
    lender = _matched((token * S + labels[place]) * M + place, (token * S + labels[sentence]) * M + sentence, M)
    wanted, left = token * M + place, np.flatnonzero(lender < 0)
    free = np.setdiff1d(np.arange(len(pairs)), lender)
    near = _matched(wanted[left], pairs[free], M, within=NEAR)
    lender[left] = np.append(free, -1)[near]
    left = np.flatnonzero(lender < 0)
    lender[left] = _nearest(wanted[left], pairs, M)[0]
    return lender


def _matched(wanted: np.ndarray, offered: np.ndarray, M: int, within: int | None = None) -> np.ndarray:
    """For each that is wanted, which of those offered lends to it, -1 where none does; the closest first, each once."""
    found, left, free = np.full(len(wanted), -1), np.argsort(wanted), np.argsort(offered)
    while True:
        left = left[np.isin(wanted[left] // M, offered[free] // M)]
        free = free[np.isin(offered[free] // M, wanted[left] // M)]
        mine, away = _nearest(wanted[left], offered[free], M)
        theirs, _ = _nearest(offered[free], wanted[left], M)
        mutual = theirs[mine] == np.arange(len(left))
        if within is not None:
            mutual &= away <= within
        if not mutual.any():
            return found
        found[left[mutual]] = free[mine[mutual]]
        left, free = left[~mutual], np.delete(free, mine[mutual])


def _nearest(wanted: np.ndarray, offered: np.ndarray, M: int) -> tuple[np.ndarray, np.ndarray]:
    """Where in `offered` (sorted) the pair of the same token lies whose sentence is nearest, and how far away.

    Sentences lie on a ring of M; every token that is wanted must be offered.
    """
    token = wanted // M * M
    start = np.searchsorted(offered, token)
    count = np.searchsorted(offered, token + M) - start
    place = np.searchsorted(offered, wanted) - start
    after, before = start + place % count, start + (place - 1) % count
    up, down = (offered[after] - wanted) % M, (wanted - offered[before]) % M
    return np.where(up <= down, after, before), np.minimum(up, down)


def _numbered(given: np.ndarray) -> tuple[int, np.ndarray]:
    kinds, number = np.unique(given, return_inverse=True)
    return len(kinds), number
