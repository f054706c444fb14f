"""Attribution: the parts add up to the model's own logit, and each is what NumPy makes of the weights."""

import numpy as np
import pytest
import torch

from playground.inspection.attribution import attribute
from playground.model import Transformer
from playground.model.forward_pass import trace
from tests.model.configs import TINY, VARIANTS

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


def roughened(config, seed=3):
    """A model whose biases and gains are not the zeros and ones of a fresh one."""
    model = Transformer(config, seed=seed)
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn(parameter.shape, generator=rng)
    return model


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_parts_add_up_to_the_logit_bias_and_all(config):
    model = roughened(config)
    seen = trace(model, IDS)
    logits = model(IDS).logits[0]
    for position in (0, 7):
        for against in (None, 2):
            found = attribute(model, seen, position, 5, against)
            expected = logits[position, 5] - (logits[position, against] if against is not None else 0)
            assert found.total == pytest.approx(expected.item(), abs=1e-4)
            assert abs(found.difference) < 1e-4
    names = [(part.kind, part.layer, part.head) for part in found.parts]
    assert len(set(names)) == len(names)
    assert sum(part.kind == "head" for part in found.parts) == config.n_layers * config.n_heads


def test_a_heads_part_is_what_numpy_makes_of_the_weights():
    model = roughened(TINY)
    seen = trace(model, IDS)
    found = attribute(model, seen, 6, 4)
    state = {name: tensor.numpy().astype(np.float64) for name, tensor in model.state_dict().items()}
    layer, head, D = 1, 2, TINY.d_head
    z = seen["z", layer][0, 6, head].numpy().astype(np.float64)
    written = state[f"blocks.{layer}.attention.out.weight"][:, head * D : (head + 1) * D] @ z
    stream = seen["resid_post", 1][0, 6].numpy().astype(np.float64)
    scale = 1 / np.sqrt(stream.var() + TINY.norm_eps)
    direct = state["head.weight"][4] @ ((written - written.mean()) * scale * state["final_norm.weight"])
    part = next(p for p in found.parts if (p.layer, p.head) == (layer, head))
    assert part.value == pytest.approx(direct, abs=1e-5)
    assert found.by_layer(2, 4)[1, 2].item() == pytest.approx(direct, abs=1e-5)
    assert found.by_layer(2, 4).shape == (2, 5)


def test_the_last_layers_head_is_worth_what_its_removal_takes_with_the_scale_held():
    """Taking a last-layer head out of a model without a last feed-forward changes the logit by its part."""
    model = roughened(TINY.replace(n_layers=1))
    with torch.no_grad():
        model.blocks[0].feedforward.down.weight.zero_()
    seen = trace(model, IDS)
    part = next(p for p in attribute(model, seen, 7, 3).parts if p.head == 1)
    stream, z = seen["resid_post", 0][0, 7].double(), seen["z", 0][0, 7].clone()
    z[[0, 2, 3]] = 0
    out = model.blocks[0].attention.out
    without = stream - (torch.nn.functional.linear(z.flatten(), out.weight)).double()
    norm, scale = model.final_norm, (stream.var(correction=0) + TINY.norm_eps).rsqrt()
    logits = [
        ((s - s.mean()) * scale * norm.weight + norm.bias) @ model.head.weight[3].double() for s in (stream, without)
    ]
    assert part.value == pytest.approx((logits[0] - logits[1]).item(), abs=1e-5)


def test_what_cannot_be_asked_is_a_sentence():
    model = Transformer(TINY)
    seen = trace(model, IDS)
    with pytest.raises(ValueError, match="prompt has 8 tokens"):
        attribute(model, seen, 8, 0)
    with pytest.raises(ValueError, match="knows 11 tokens"):
        attribute(model, seen, 0, 11)
