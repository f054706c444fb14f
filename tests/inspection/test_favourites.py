"""Favourites equal a count over all tokens, and luck has none."""

from math import comb

import numpy as np
import pytest

from playground.inspection import favourites as s


def test_favourites_equal_a_count_over_all_tokens():
    rng = np.random.default_rng(4)
    tokens = rng.integers(0, 9, 600)
    experts = np.stack([rng.integers(0, 4, 600), rng.integers(4, 8, 600)], axis=1)
    experts[tokens == 3, 0] = 2  # expert 2 likes token 3
    found, looked = s.favourites(experts, tokens, 9)
    assert looked == 9 * 9 and [lift.token for lift in found[2]] == [3] and found[8] == []
    (liked,) = found[2]
    own = [row for t, row in zip(tokens, experts) if t == 3]
    assert liked.count == liked.taken == len(own)
    assert liked.lift == pytest.approx(1 / (experts == 2).any(axis=1).mean())


def test_luck_has_no_favourites_and_neither_has_an_expert_that_takes_all():
    """Of forty texts on which experts are drawn, at most one in twenty has any favourite at all."""
    rng, texts = np.random.default_rng(0), 40
    named = 0
    for _ in range(texts):
        tokens = rng.choice(30, 3072, p=np.arange(1, 31) / 465)
        experts = rng.choice(8, 3072, p=[0.001, 0.199, *[0.8 / 6] * 6])
        experts = np.stack([experts, np.full(3072, 8)], axis=1)  # expert 8 takes every token
        named += any(s.favourites(experts, tokens, 9)[0])
    assert named <= texts / 20 + 1
    exact = sum(comb(20, k) * 0.3**k * 0.7 ** (20 - k) for k in range(11, 21))
    assert s._tail(11, 20, 0.3) == pytest.approx(exact, abs=1e-12)
