"""The cache walk: what is held equals what a pass over the whole text makes, counts are the worked ones."""

import itertools

import numpy as np
import pytest
import torch

from playground.engine import SamplingConfig, generate
from playground.inspection.cachewalk import cache_walk
from playground.model import Transformer
from playground.model.forward_pass import trace
from tests.model.configs import CAUSAL, TINY

PROMPT = [3, 1, 4, 1, 5]


@pytest.mark.parametrize("config", CAUSAL.values(), ids=CAUSAL.keys())
def test_every_step_holds_what_a_whole_pass_makes(config):
    model = Transformer(config, seed=6)
    steps = list(cache_walk(model, PROMPT, 4))
    expected = [s.tokens[0] for s in generate(model, PROMPT, 4, SamplingConfig(greedy=True), use_cache=False)]
    assert [step.chosen for step in steps] == expected
    text = PROMPT + expected
    rotated = config.positions == "rotary"
    for i, step in enumerate(steps):
        S = len(PROMPT) + i
        assert step.read == (tuple(PROMPT) if i == 0 else (text[S - 1],)) and step.held == S
        seen = trace(model, torch.tensor([text[:S]]))
        for layer in range(config.n_layers):
            keys = seen["k_rotated" if rotated else "k", layer][0].transpose(0, 1)
            queries = seen["q_rotated" if rotated else "q", layer][0].transpose(0, 1)
            assert torch.allclose(step.keys[layer], keys, atol=1e-4)
            assert torch.allclose(step.values[layer], seen["v", layer][0].transpose(0, 1), atol=1e-4)
            assert torch.allclose(step.queries[layer], queries[:, step.held_before :], atol=1e-4)
            whole = seen["pattern", layer][0]
            assert torch.allclose(step.patterns[layer], whole[:, step.held_before :], atol=1e-4)
        chances = np.exp(seen["logits"][0, -1].double().numpy())
        assert np.allclose(step.probabilities, chances / chances.sum(), atol=1e-4)
        assert step.difference < 1e-3
        assert step.nbytes == 2 * 4 * config.n_layers * config.kv_heads * config.d_head * S
    for earlier, later in itertools.pairwise(steps):  # reused, bit for bit
        assert torch.equal(earlier.keys, later.keys[:, :, : earlier.held])
        assert torch.equal(earlier.values, later.values[:, :, : earlier.held])


def test_the_counts_are_the_worked_example():
    steps = list(cache_walk(Transformer(TINY), PROMPT, 3))
    assert [step.projections for step in steps] == [15, 18, 21]
    assert steps[-1].projections_without_cache == 54  # golden: 54 without; 24 with the token after the last one read
    assert steps[-1].projections + 3 == 24


def test_it_ends_where_the_context_is_full():
    steps = list(cache_walk(Transformer(TINY), PROMPT, 100))
    assert steps[-1].held == TINY.context_length and len(steps) == TINY.context_length - len(PROMPT) + 1


def test_what_cannot_be_walked_is_a_sentence():
    for prompt, config, words in (
        ([], TINY, "empty"),
        ([1] * 13, TINY, "more than the context of 12"),
        (PROMPT, TINY.replace(causal=False), "nothing can be kept"),
    ):
        with pytest.raises(ValueError, match=words):
            cache_walk(Transformer(config), prompt, 2)
