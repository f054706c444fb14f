"""The hand-written backwards equal autograd's own on the plain formulas."""

import pytest
import torch
import torch.nn.functional as F

from playground.model.fused import RMSNorm, rotate_pairs, squared_relu
from playground.model.positions import rotary_table

X = torch.randn(2, 5, 3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
COSINES, SINES = rotary_table(5, 8, 100.0)
NORM = RMSNorm(8, 1e-5)
with torch.no_grad():
    NORM.weight.copy_(torch.linspace(0.5, 2.0, 8))

PAIRS = {
    "rms norm": (NORM, lambda x: x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * NORM.weight),
    "squared relu": (squared_relu, lambda x: F.relu(x) ** 2),
    "rotation": (
        lambda x: rotate_pairs(x, COSINES, SINES),
        lambda x: x * COSINES + torch.cat((x[..., 4:], x[..., :4]), dim=-1) * SINES,
    ),
}


@pytest.mark.parametrize(("ours", "plain"), PAIRS.values(), ids=PAIRS.keys())
def test_values_and_gradients_equal_the_plain_formula(ours, plain):
    upstream = torch.randn(X.shape, generator=torch.Generator().manual_seed(1))
    results = []
    for function in (ours, plain):
        x = X.clone().requires_grad_()
        NORM.weight.grad = None
        y = function(x)
        y.backward(upstream)
        results.append((y, x.grad, NORM.weight.grad))
    for mine, expected in zip(*results):
        assert mine is None or torch.allclose(mine, expected, atol=1e-5)


@pytest.mark.parametrize(("ours", "plain"), PAIRS.values(), ids=PAIRS.keys())
def test_values_without_gradients_equal_the_plain_formula(ours, plain):
    with torch.no_grad():
        assert torch.allclose(ours(X), plain(X), atol=1e-6)


def test_a_norm_of_nothing_is_nothing():
    x = torch.zeros(1, 1, 1, 8, requires_grad=True)
    NORM(x).sum().backward()
    assert torch.isfinite(x.grad).all() and NORM(x).abs().max() == 0
