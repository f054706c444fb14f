"""What mixed precision on a CPU does in one piece equals its plain formula: in fp64 to 12 digits."""

import pytest
import torch

from playground.model import ModelConfig, Recorder, Transformer
from playground.model.attention import blend
from playground.model.fast.halves import Blend, Product, Thought
from playground.model.fast.layers import linear
from playground.model.feedforward import think
from playground.model.moe import visit
from playground.model.positions import rotary_table
from tests.model.configs import TINY

RNG = torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def one_thread():
    """Several threads are left to autocast."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=RNG, dtype=torch.float64)


B, T, H, D, d, f = 2, 5, 3, 4, 6, 7
HEADS = ModelConfig(d_model=H * D, n_heads=H)
GAINS = torch.linspace(0.5, 2.0, D, dtype=torch.float64), torch.linspace(1.0, 0.2, D, dtype=torch.float64)
TABLES = tuple(table.double() for table in rotary_table(T, D, 100.0))
NONE = None, None


def thought(activation: str, bias: bool) -> tuple:
    gated = activation == "swiglu"
    matrices = drawn(f, d), drawn(f, d) if gated else None, drawn(d, f)
    biases = (drawn(f), drawn(f) if gated else None, drawn(d)) if bias else (None, None, None)
    return drawn(B, T, d), ModelConfig(d_model=d, n_heads=1, activation=activation), *matrices, *biases


FORMULAS = {
    "product": (Product, linear, (drawn(B, T, d), drawn(f, d), None)),
    "product, bias": (Product, linear, (drawn(B, T, d), drawn(f, d), drawn(f))),
    "gelu, biases": (Thought, think, thought("gelu", bias=True)),
    "relu2": (Thought, think, thought("relu2", bias=False)),
    "swiglu, biases": (Thought, think, thought("swiglu", bias=True)),
    "blend": (Blend, blend, (drawn(B, T, 3 * H * D), HEADS, *NONE, *NONE)),
    "blend, no mask": (Blend, blend, (drawn(B, T, 3 * H * D), HEADS.replace(causal=False), *NONE, *NONE)),
    "blend, QK-norm": (Blend, blend, (drawn(B, T, 3 * H * D), HEADS, *GAINS, *NONE)),
    "blend, QK-norm, rotary": (Blend, blend, (drawn(B, T, 3 * H * D), HEADS, *GAINS, *TABLES)),
}
every_formula = pytest.mark.parametrize(("quick", "formula", "inputs"), FORMULAS.values(), ids=FORMULAS.keys())


def learning(inputs: tuple, dtype: torch.dtype) -> tuple[list, list[torch.Tensor]]:
    """The inputs with a gradient wanted of every tensor that can have one, and those tensors."""
    fresh = [x.detach().to(dtype).requires_grad_(x.shape != (T, 1, D)) if isinstance(x, torch.Tensor) else x
             for x in inputs]  # fmt: skip
    return fresh, [x for x in fresh if isinstance(x, torch.Tensor) and x.requires_grad]


def with_gradients(function, inputs: tuple, dtype: torch.dtype) -> list[torch.Tensor]:
    fresh, wanted = learning(inputs, dtype)
    y = function(*fresh)
    upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(y.dtype)
    return [y, *torch.autograd.grad(y, wanted, upstream)]


@every_formula
def test_values_and_gradients_equal_the_plain_formulas(quick, formula, inputs):
    """In fp64, outside of autocast, where the formula computes itself."""
    plain = with_gradients(formula, inputs, torch.float64)
    for mine, theirs in zip(with_gradients(quick.apply, inputs, torch.float64), plain, strict=True):
        assert mine.shape == theirs.shape and torch.allclose(mine, theirs, atol=1e-12)


@every_formula
def test_second_derivatives_are_right(quick, formula, inputs):
    fresh, wanted = learning(inputs, torch.float64)

    def of(*values):
        replaced = {id(old): new for old, new in zip(wanted, values)}
        return quick.apply(*(replaced.get(id(x), x) for x in fresh))

    assert torch.autograd.gradgradcheck(of, wanted, fast_mode=True)


@every_formula
def test_in_bfloat16_it_stands_in_and_weights_keep_fp32_gradients(quick, formula, inputs):
    plain = with_gradients(formula, inputs, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        fresh, _ = learning(inputs, torch.float32)
        assert type(formula(*fresh).grad_fn).__name__ == f"{quick.__name__}Backward"
        mixed = with_gradients(formula, inputs, torch.float32)
    assert mixed[0].dtype == torch.bfloat16 and all(each.dtype == torch.float32 for each in mixed[1:])
    for mine, theirs in zip(mixed, plain):
        assert (mine.float() - theirs).norm() < 0.02 * theirs.norm()


@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_rows_that_fill_an_experts_run_up_change_nothing(monkeypatch, activation):
    """In fp64, every expert's run brought to a multiple of four; one expert has no visitor at all."""
    monkeypatch.setattr("playground.model.fast.grouped._run", lambda x: 4)
    config = ModelConfig(d_model=d, n_heads=1, n_experts=4, d_expert=f, activation=activation)
    chosen = torch.tensor([[0, 1], [1, 0], [3, 1], [1, 3], [1, 0]])
    gate = drawn(4, d, f) if activation == "swiglu" else None
    biases = drawn(4, f), drawn(4, f) if activation == "swiglu" else None, drawn(4, d)
    inputs = drawn(5, d), drawn(5, 2).softmax(-1), chosen, config, drawn(4, d, f), gate, drawn(4, f, d), *biases
    fresh = [x.requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
    wanted = [x for x in fresh if isinstance(x, torch.Tensor) and x.requires_grad]
    answers = visit(*fresh), visit.__wrapped__(*fresh)
    for mine, plain in zip(*((y, *torch.autograd.grad(y.square().sum(), wanted)) for y in answers)):
        assert torch.allclose(mine, plain, atol=1e-12)


def test_a_hook_on_a_part_is_called_under_autocast_too():
    model, seen = Transformer(OURS, seed=1), []
    parts = model.blocks[0].feedforward.up, model.blocks[0].attention.k_norm, model.blocks[1].attention.out
    for part in parts:
        part.register_forward_hook(lambda part, *_: seen.append(part))
    with torch.autocast("cpu", torch.bfloat16):
        model(torch.zeros(1, 4, dtype=torch.long))
    assert len(seen) == len(parts)


OURS = TINY.replace(norm="rmsnorm", activation="swiglu", positions="rotary", qk_norm=True, qkv_bias=False)


@pytest.mark.parametrize("config", [TINY, OURS, OURS.replace(n_kv_heads=1), OURS.replace(n_experts=3, d_expert=8)])
def test_a_watched_model_computes_what_an_unwatched_one_does(config):
    """Under autocast a tap sees every step; without one they are few pieces. To bfloat16's digits they agree."""
    model = Transformer(config, seed=1)
    ids = torch.randint(config.vocab_size, (2, 9), generator=torch.Generator().manual_seed(2))
    gradients = []
    for taps in ({}, {"tap": Recorder()}):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(ids[:, :-1], **taps).logits.mT.float(), ids[:, 1:])
        loss.backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert (gradients[0] - gradients[1]).norm() < 0.03 * gradients[1].norm()
