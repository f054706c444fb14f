"""Sizes: what is counted is what a model has, keeps and computes."""

import pytest
import torch

from playground.inspection.sizes import activations, compute
from playground.model import ModelConfig, Transformer, trace
from tests.model.configs import VARIANTS


@pytest.mark.parametrize("name", VARIANTS)
def test_operations_by_part_are_all_there_are(name):
    config = VARIANTS[name]
    parts = compute(config, 9)
    assert sum(parts.values()) == config.flops_per_token(9) and min(parts.values()) > 0
    longer = compute(config, 10)
    assert {part for part in parts if parts[part] != longer[part]} == {next(part for part in parts if "scores" in part)}


@pytest.mark.parametrize("name", ["learned", "rmsnorm, swiglu, grouped", "one key head, qk-norm, relu2"])
def test_what_a_block_keeps_is_what_a_pass_makes(name):
    config = VARIANTS[name]
    seen = trace(Transformer(config), torch.randint(0, 11, (3, 7)))
    made = {part: seen[part, 0].numel() for part in ("q", "k", "v", "scores", "z", "ff_hidden")}
    assert list(activations(config, 3, 7).values()) == [
        made["q"] + made["k"] + made["v"], made["scores"], made["z"], made["ff_hidden"],
    ]  # fmt: skip


def test_a_mixture_keeps_the_hidden_numbers_of_the_experts_that_are_visited():
    """524,288 stood there for eight experts of width 128 of which a token visits one: the width of a dense layer."""
    mixture = ModelConfig(vocab_size=11, context_length=64, d_model=64, n_heads=4, n_experts=8, experts_per_token=1)
    mixture = mixture.replace(d_expert=128)
    assert activations(mixture, 32, 64)["hidden layer"] == 32 * 64 * 128
    two = mixture.replace(experts_per_token=2, shared_expert=True)
    assert activations(two, 32, 64)["hidden layer"] == 32 * 64 * 3 * 128
