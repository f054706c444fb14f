"""Muon agrees with an independent one, every parameter has one optimizer, and schedules rise and fall as they say."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from playground.model import PRESETS, ModelConfig, Transformer
from playground.training import TrainConfig
from playground.training.optimizers import AdamW, Muon, make_optimizers, orthogonalise
from playground.training.recipes import for_own_text

every_dtype = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)


@every_dtype
@pytest.mark.parametrize("shape", [(16, 16), (16, 24), (16, 40), (16, 200)])
@pytest.mark.parametrize("spread", [1.0, 1e-4], ids=["alike", "steep"])
def test_orthogonalise_applies_the_polynomial_to_each_singular_value(shape, spread, dtype):
    """Against the scalar iteration on numpy's singular values, also where these span many magnitudes.

    In bfloat16 a direction weaker than the rounding of the strongest is noise, which five steps raise by up to
    3.4445⁵ = 485 like anything else: there, only the others can be asked for, and that nothing grows beyond one.
    """
    rng, eps = np.random.default_rng(0), torch.finfo(dtype).eps
    u, _, v = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
    values = np.geomspace(1.0, spread, num=16)
    expected = values / np.linalg.norm(values)
    strong = expected > eps
    for _ in range(5):
        expected = 3.4445 * expected - 4.7750 * expected**3 + 2.0315 * expected**5
    got = orthogonalise(torch.tensor(u @ np.diag(values) @ v)[None].to(dtype))[0].double().numpy()
    assert np.linalg.svd(got, compute_uv=False).max() < 1.25
    assert np.abs(np.diag(u.T @ got @ v.T) - expected)[strong].max() < (4 * eps if dtype == torch.bfloat16 else 1e-3)
    if dtype != torch.bfloat16:
        assert strong.all() and np.abs(got - u @ np.diag(expected) @ v).max() < 1e-3


def test_muon_steps_like_torch_muon():
    """torch's own runs its iteration in bfloat16, so the two agree to its two or three digits."""
    rng = torch.Generator().manual_seed(0)
    shapes = [(24, 16), (16, 24), (16, 16), (16, 16)]
    ours = [nn.Parameter(torch.randn(s, generator=rng)) for s in shapes]
    theirs = [nn.Parameter(p.detach().clone()) for p in ours]
    mine = Muon(ours, lr=0.02, momentum=0.95, weight_decay=0.1)
    reference = torch.optim.Muon(theirs, lr=0.02, momentum=0.95, weight_decay=0.1)
    for _ in range(5):
        for a, b in zip(ours, theirs):
            a.grad = torch.randn(a.shape, generator=rng)
            b.grad = a.grad.clone()
        mine.step()
        reference.step()
    for a, b, shape in zip(ours, theirs, shapes):
        moved = 5 * 0.02 * max(1, shape[0] / shape[1]) ** 0.5 * (0.25**0.5)
        assert (a - b).abs().max() < 0.05 * moved


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_heads_below_one_another_are_orthogonalised_one_by_one(kv_heads):
    """So that one matrix for all queries, keys and values learns like separate heads do."""
    config = ModelConfig(vocab_size=5, context_length=4, n_layers=1, d_model=16, n_heads=4, n_kv_heads=kv_heads)
    model = Transformer(config)
    qkv = model.blocks[0].attention.qkv.weight
    heads = [nn.Parameter(rows.clone()) for rows in qkv.detach().split(4)]
    qkv.grad = torch.randn(qkv.shape, generator=torch.Generator().manual_seed(1))
    for head, rows in zip(heads, qkv.grad.split(4)):
        head.grad = rows.clone()
    settings = TrainConfig(optimizer="muon", muon_learning_rate=0.1, weight_decay=0.2)
    make_optimizers(model, settings)[-1].step()
    Muon(heads, lr=0.1, weight_decay=0.2).step()
    assert len(heads) == 4 + 2 * kv_heads
    assert torch.allclose(qkv, torch.cat(heads), atol=1e-6)


def test_experts_are_orthogonalised_one_by_one_and_adamw_steps_like_torchs():
    experts = nn.Parameter(torch.zeros(3, 8, 12))  # (E, in, out)
    single = [nn.Parameter(torch.zeros(12, 8)) for _ in range(3)]  # (out, in)
    gradient = torch.randn(3, 8, 12, generator=torch.Generator().manual_seed(1))
    experts.grad = gradient
    for e, parameter in enumerate(single):
        parameter.grad = gradient[e].T.contiguous()
    Muon([experts], lr=0.1).step()
    Muon(single, lr=0.1).step()
    for e, parameter in enumerate(single):
        assert torch.allclose(experts[e].T, parameter, atol=1e-5)
    torch.manual_seed(0)
    ours, theirs = nn.Linear(5, 3), nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    settings = {"lr": 0.01, "weight_decay": 0.1, "betas": (0.9, 0.95), "fused": True}
    optimizers = AdamW(ours.parameters(), **settings), torch.optim.AdamW(theirs.parameters(), **settings)
    for _ in range(3):
        x = torch.randn(4, 5)
        for model, optimizer in zip((ours, theirs), optimizers):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters()))
    assert not any(p.grad is None or p.grad.requires_grad for p in ours.parameters())


@pytest.mark.parametrize("name", ["fast", "s5", "s5-moe", "s2"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_every_parameter_has_one_optimizer_and_norms_do_not_decay(name, optimizer):
    model = Transformer(PRESETS[name].replace(vocab_size=28))
    made = make_optimizers(model, TrainConfig(optimizer=optimizer, weight_decay=0.3))
    groups = [g for o in made for g in o.param_groups]
    owned = [id(p) for g in groups for p in g["params"]]
    assert sorted(owned) == sorted(id(p) for p in model.parameters())
    decays = {id(p): g["weight_decay"] for g in groups for p in g["params"]}
    for parameter_name, parameter in model.named_parameters():
        plain = parameter_name.endswith("bias") or "norm" in parameter_name
        assert decays[id(parameter)] == (0.0 if plain else 0.3), parameter_name


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_rates_rise_to_one_and_fall_to_the_final_fraction(schedule):
    config = TrainConfig(steps=100, warmup_steps=10, schedule=schedule, final_fraction=0.1)
    rates = [config.rate_at(step) for step in range(1, 101)]
    assert rates[0] == pytest.approx(0.1) and rates[9] == pytest.approx(1.0)
    assert all(a <= b for a, b in pairwise(rates[:10]))
    assert all(a >= b for a, b in pairwise(rates[10:]))
    end = 1.0 if schedule == "constant" else 0.1
    assert config.rate_at(101) == pytest.approx(end) and rates[-1] == pytest.approx(end, abs=0.011)


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
@pytest.mark.parametrize(("steps", "warmup"), [(1, 0), (1, 20), (10, 20), (10, 10), (10, 9), (3, 1), (600, 20)])
def test_every_step_learns_and_the_peak_is_reached_in_every_run(schedule, steps, warmup):
    config = TrainConfig(steps=steps, warmup_steps=warmup, schedule=schedule, final_fraction=0.0)
    rates = [config.rate_at(step) for step in range(1, steps + 1)]
    assert min(rates) > 0
    assert max(rates) == 1.0 or (warmup == 0 and max(rates) == rates[0] >= 0.5)


def test_snapshots_begin_dense_and_own_texts_get_the_size_that_was_measured_to_be_best():
    steps = TrainConfig(steps=1000, snapshots=40).snapshot_steps()
    assert steps[0] == 0 and steps[-1] == 1000 and 35 <= len(steps) <= 40
    gaps = [b - a for a, b in pairwise(steps)]
    assert gaps == sorted(gaps)
    assert TrainConfig(snapshots=0).snapshot_steps() == []
    chosen = {(tokens, vocabulary): for_own_text(tokens, vocabulary).size
              for tokens in (7_000, 28_000, 60_000, 128_000, 900_000) for vocabulary in (60, 512, 6000)}  # fmt: skip
    tiny = {key for key, size in chosen.items() if size == "tiny"}
    assert tiny == {(7_000, 60), (28_000, 60), (28_000, 512), (60_000, 512), (128_000, 512)}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": -1}, "number.*0"),
        ({"steps": 10.5}, "steps.*number"),
        ({"learning_rate": -1}, "learning_rate.*0.*10"),
        ({"optimizer": "sgd"}, "choose.*adamw"),
        ({"precision": "int8"}, "fp32.*bf16.*fp16"),
        ({"lerning_rate": 1}, "setting.*'lerning_rate'"),
        ({"compile": 1}, "compile.*1"),
        ({"max_seconds": float("inf")}, "max_seconds.*number"),
        ({"device": 3}, "device.*3"),
        ({"sample_prompt": None}, "sample_prompt.*text"),
        ({"seed": 2**64}, "number.*0"),
        ({"weight_decay": 10**400}, "weight_decay.*0.*10"),
        ({"snapshots": 10**9}, "0.*10000"),
    ],
)
def test_nonsense_is_refused_in_words(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        TrainConfig().replace(**changes)
