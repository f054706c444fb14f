"""The twin is the model, called quicker, unless that does more than its class; its layers compute as torch's do."""

import pytest
import torch
from torch import nn

from playground.engine import generate
from playground.model import Transformer, trace
from playground.model.kernels.layers import Embedding, LayerNorm, Linear
from playground.model.kernels.strip_module_calls import strip_module_calls
from tests.model.configs import TINY, VARIANTS
from tests.model.test_transformer import some_ids


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_twin_is_the_same_function_of_the_same_weights(config):
    model, ids = Transformer(config), some_ids(config)
    twin = strip_module_calls(model)
    with torch.no_grad():
        assert torch.equal(twin(ids).logits, model(ids).logits)
        for parameter in model.parameters():
            parameter.mul_(1.1)
        assert torch.equal(twin(ids).logits, model(ids).logits)
    seen, expected = trace(twin, ids), trace(model, ids)
    assert set(seen) == set(expected) and all(torch.equal(seen[key], expected[key]) for key in expected)


def test_a_twin_leaves_its_model_alone_and_a_hook_for_all_modules_takes_part():
    model = Transformer(TINY)
    before = {name: id(part) for name, part in model.named_modules()}
    assert strip_module_calls(model) is not model
    assert {name: id(part) for name, part in model.named_modules()} == before
    assert type(model) is Transformer and "embedding" not in vars(model)
    seen = []
    handle = nn.modules.module.register_module_forward_hook(lambda module, inputs, output: seen.append(module))
    try:
        next(generate(Transformer(TINY), [1, 2, 3], 1))
    finally:
        handle.remove()
    assert any(isinstance(module, Transformer) for module in seen)


class Halved(nn.Linear):
    """A layer that is one of torch's, and answers otherwise."""

    def forward(self, x):
        return super().forward(x) / 2


def _hook(model):
    model.blocks[1].attention.out.register_forward_hook(lambda module, inputs, output: output / 2)


def _pre_hook(model):
    model.head.register_forward_pre_hook(lambda module, inputs: (inputs[0].flip(-1),))


def _own_forward(model):
    layer = model.blocks[0].feedforward
    plain = layer.forward
    layer.forward = lambda *inputs: plain(*inputs) * 2


def _own_layer(model):
    halved = Halved(TINY.d_model, TINY.vocab_size, bias=False)
    halved.weight = model.head.weight
    model.head = halved


@pytest.mark.parametrize("change", [_hook, _pre_hook, _own_forward, _own_layer])
def test_what_is_hung_into_a_model_takes_part_in_decoding(change):
    model = Transformer(TINY, seed=1)
    before = next(generate(model, [1, 2, 3], 1)).logits
    change(model)
    with torch.no_grad():
        expected = model(torch.tensor([[1, 2, 3]])).logits[:, -1]
    assert not torch.allclose(expected, before, atol=1e-3)
    assert torch.allclose(next(generate(model, [1, 2, 3], 1)).logits, expected, atol=1e-5)


def test_the_layers_are_torchs_own_and_draw_nothing():
    x, ids = torch.randn(2, 5, 8), torch.randint(7, (2, 5))
    for ours, plain, given in (
        (Linear(8, 3), nn.Linear(8, 3), x),
        (Embedding(7, 8), nn.Embedding(7, 8), ids),
        (LayerNorm(8, eps=1e-3), nn.LayerNorm(8, eps=1e-3), x),
        (LayerNorm(8, eps=1e-3, bias=False), nn.LayerNorm(8, eps=1e-3, bias=False), x),
    ):
        ours.load_state_dict(plain.state_dict())
        assert torch.equal(ours(given), plain(given))
    before = torch.get_rng_state()
    Linear(8, 3), Embedding(7, 8)
    assert torch.equal(before, torch.get_rng_state())
