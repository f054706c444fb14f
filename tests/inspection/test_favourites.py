"""Favourites equal a count over all tokens, luck has none, and a random router has learned nothing."""

from math import comb

import numpy as np
import pytest
import torch

from playground.inspection import favourites as s
from playground.inspection.routing import routing_of
from playground.model import ModelConfig, Transformer


def test_favourites_equal_a_count_over_all_tokens():
    rng = np.random.default_rng(4)
    tokens = rng.integers(0, 9, 600)
    experts = np.stack([rng.integers(0, 4, 600), rng.integers(4, 8, 600)], axis=1)
    experts[tokens == 3, 0] = 2  # expert 2 likes token 3
    found = s.favourites(experts, tokens, 9)
    assert [lift.token for lift in found[2]] == [3] and found[8] == []
    (liked,) = found[2]
    own = [row for t, row in zip(tokens, experts) if t == 3]
    assert liked.count == liked.taken == len(own)
    assert liked.lift == pytest.approx(1 / (experts == 2).any(axis=1).mean())
    visits = [int((experts == expert).any(axis=1).sum()) for expert in range(9)]
    assert s.own_kind(found, visits) is None, "expert 2 takes most other tokens too"
    assert s.own_kind(found, [*visits[:2], len(own), *visits[3:]]) == (2, [liked])


def test_luck_has_no_favourites_and_neither_has_an_expert_that_takes_all():
    """Of forty texts on which experts are drawn, at most one in twenty has any favourite at all."""
    rng, texts = np.random.default_rng(0), 40
    named = 0
    for _ in range(texts):
        tokens = rng.choice(30, 3072, p=np.arange(1, 31) / 465)
        experts = rng.choice(8, 3072, p=[0.001, 0.199, *[0.8 / 6] * 6])
        experts = np.stack([experts, np.full(3072, 8)], axis=1)  # expert 8 takes every token
        named += any(s.favourites(experts, tokens, 9))
    assert named <= texts / 20 + 1
    exact = sum(comb(20, k) * 0.3**k * 0.7 ** (20 - k) for k in range(11, 21))
    assert s._tail(11, 20, 0.3) == pytest.approx(exact, abs=1e-12)


def test_random_weights_are_unclear_and_a_router_that_sorts_by_token_is_clear():
    """Of forty random routers, at most one in ten is said to have learned to sort tokens."""
    config = ModelConfig(vocab_size=12, context_length=32, n_layers=1, d_model=8, n_heads=1, n_experts=4, d_expert=8)
    ids = torch.randint(0, 12, (8, 32), generator=torch.Generator().manual_seed(0))
    clear = 0
    for seed in range(40):
        model = Transformer(config, seed=seed)
        clear += s.sorting(model, ids, 0, routing_of(model, ids).experts[0, ..., 0].flatten().numpy()).is_clear
    assert clear <= 4
    first = (ids.flatten() % 4).numpy()
    by_token = s.sorting(model, ids, 0, first)
    assert by_token.is_clear and by_token.learned == 1 - np.bincount(first).max() / len(first)
