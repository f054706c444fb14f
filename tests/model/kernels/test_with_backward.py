"""What is written out by hand equals the plain formula that it stands beside: values, gradients, second derivatives."""

import pytest
import torch

from playground.model import ModelConfig
from playground.model.kernels.elementwise import rms_norm, rotate, squared_relu
from playground.model.kernels.experts import apply_experts
from playground.model.transformer import rotary_table

RNG = torch.Generator().manual_seed(0)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=RNG, dtype=torch.float64)


def experts(activation: str, bias: bool, d: int = 6, f: int = 5, E: int = 3, K: int = 2) -> tuple:
    config = ModelConfig(d_model=d, n_heads=1, n_experts=E, d_expert=f, activation=activation, gelu_tanh=bias)
    chosen = torch.stack([torch.randperm(E, generator=RNG)[:K] for _ in range(7)])
    gated = activation == "swiglu"
    matrices = drawn(E, d, f), drawn(E, d, f) if gated else None, drawn(E, f, d)
    biases = (drawn(E, f), drawn(E, f) if gated else None, drawn(E, d)) if bias else (None, None, None)
    return drawn(7, d), chosen, drawn(7, K).softmax(-1), config, *matrices, *biases


COSINES, SINES = (table.double() for table in rotary_table(5, 8, 100.0))
X = drawn(2, 5, 3, 8)
FORMULAS = {
    "rms norm": (rms_norm, (X, torch.linspace(0.5, 2.0, 8, dtype=torch.float64), 1e-5)),
    "squared relu": (squared_relu, (X,)),
    "rotation": (rotate, (X, COSINES, SINES)),
    "experts, gelu": (apply_experts, experts("gelu", bias=False)),
    "experts, gelu by tanh, biases": (apply_experts, experts("gelu", bias=True)),
    "experts, relu2, biases": (apply_experts, experts("relu2", bias=True)),
    "experts, relu": (apply_experts, experts("relu", bias=False)),
    "experts, swiglu, biases": (apply_experts, experts("swiglu", bias=True)),
}
every_formula = pytest.mark.parametrize(("formula", "inputs"), FORMULAS.values(), ids=FORMULAS.keys())


def learning(inputs: tuple, dtype: torch.dtype = torch.float64) -> tuple[list, list[torch.Tensor]]:
    """The inputs with a gradient wanted of every tensor that can have one, and those tensors."""
    fresh = [x.detach().to(dtype).requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
             for x in inputs]  # fmt: skip
    wanted = [x for x in fresh if isinstance(x, torch.Tensor) and x.requires_grad and x.shape[-2:] != (1, 8)]
    return fresh, wanted  # the tables of a rotation have no gradient


@every_formula
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_values_and_gradients_equal_the_plain_formulas(formula, inputs, dtype):
    results, backwards = [], []
    for function in (formula, formula.__wrapped__):
        fresh, wanted = learning(inputs, dtype)
        y = function(*fresh)
        backwards.append(type(y.grad_fn))
        upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
        results.append([y, *torch.autograd.grad(y, wanted, upstream)])
    assert backwards[0] is not backwards[1]
    for mine, plain in zip(*results):
        assert torch.allclose(mine, plain, atol=1e-4 if dtype == torch.float32 else 1e-12)


@every_formula
def test_values_without_gradients_equal_the_plain_formulas(formula, inputs):
    with torch.no_grad():
        assert torch.allclose(formula(*inputs), formula.__wrapped__(*inputs), atol=1e-12)


@every_formula
def test_gradients_equal_finite_differences_and_a_second_derivative_is_refused_not_wrong(formula, inputs):
    fresh, wanted = learning(inputs)

    def of(*values):
        replaced = {id(old): new for old, new in zip(wanted, values)}
        return formula(*(replaced.get(id(x), x) for x in fresh))

    assert torch.autograd.gradcheck(of, wanted, fast_mode=True)
    (gradient,) = torch.autograd.grad(of(*wanted).square().sum(), wanted[:1], create_graph=True)
    if formula is not rotate:  # which is linear: what is written out is right for all derivatives
        with pytest.raises(RuntimeError, match="once_differentiable"):
            gradient.sum().backward()


def test_the_plain_rms_norm_is_what_its_docstring_says_and_of_nothing_is_nothing():
    x, gain, eps = FORMULAS["rms norm"][1]
    written = x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain
    assert torch.allclose(rms_norm.__wrapped__(x, gain, eps), written)
    x, gain = torch.zeros(1, 1, 1, 8, requires_grad=True), torch.ones(8, requires_grad=True)
    y = rms_norm(x, gain, 1e-5)
    y.sum().backward()
    assert torch.isfinite(x.grad).all() and y.abs().max() == 0
