"""torch's layers without their detours compute what torch's do, and leave the drawing of weights to the model."""

import torch
from torch import nn

from playground.model.kernels.layers import Embedding, LayerNorm, Linear


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
