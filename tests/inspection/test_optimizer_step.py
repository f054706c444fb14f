"""One optimizer step: gradients by finite differences, steps by formulas, and a stored model that never moves."""

import copy

import pytest
import torch
import torch.nn.functional as F

from playground.inspection.head_matrices import head_matrix
from playground.inspection.optimizer_step import first_adamw_step, optimizer_step
from playground.model import Transformer
from playground.training import TrainConfig
from tests.model.configs import GPU, TINY, VARIANTS

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
CONFIG = TrainConfig(gradient_clip=0.0)


def loss(model):
    text = torch.tensor([IDS])
    return F.cross_entropy(model(text[:, :-1]).logits[0].double().cpu(), text[0, 1:])


@pytest.mark.parametrize("name", ["learned", "tied", "separate heads", "experts", "post-norm"])
def test_the_stored_model_stays_and_the_copy_learns(name):
    model = Transformer(VARIANTS[name], seed=7).to(GPU)
    model.requires_grad_(False)
    kept = copy.deepcopy(model.state_dict())
    report = optimizer_step(model, IDS, CONFIG)
    assert all(torch.equal(tensor, kept[key]) for key, tensor in model.state_dict().items())
    assert all(p.grad is None and not p.requires_grad for p in model.parameters())
    assert report.loss_after < report.loss_before
    assert report.loss_before == pytest.approx(loss(model).item(), abs=1e-5)
    changed = copy.deepcopy(model)
    changed.load_state_dict(
        {**kept, **report.after, **({"head.weight": report.after["embedding.weight"]} if name == "tied" else {})}
    )
    assert report.loss_after == pytest.approx(loss(changed).item(), abs=1e-5)
    assert sum(weights.numel() for weights in report.before.values()) == model.config.n_parameters
    assert report.before.keys() == report.after.keys() == report.gradients.keys() == report.decays.keys()


def test_gradients_are_the_slope_of_the_loss():
    model = Transformer(TINY, seed=7).double()
    report = optimizer_step(model, IDS, CONFIG)
    for name, at in (
        ("blocks.0.attention.qkv.weight", (5, 3)),
        ("embedding.weight", (4, 2)),
        ("final_norm.bias", (1,)),
    ):
        slopes = []
        for sign in (1, -1):
            nudged = copy.deepcopy(model)
            nudged.get_parameter(name).data[at] += sign * 1e-5
            slopes.append(loss(nudged).item())
        assert report.gradients[name][at].item() == pytest.approx((slopes[0] - slopes[1]) / 2e-5, abs=1e-6), name
    squares = sum(g.square().sum() for g in report.gradients.values())
    assert report.gradient_norm == pytest.approx(squares.sqrt().item(), rel=1e-5)


def test_every_weight_moves_by_the_formula():
    model = Transformer(TINY, seed=7)
    config = CONFIG.replace(optimizer="adamw", learning_rate=0.004, beta1=0.8, beta2=0.95, weight_decay=0.2)
    report = optimizer_step(model, IDS, config)
    for name in ("blocks.1.attention.qkv.weight", "blocks.0.feedforward.up.bias", "head.weight", "final_norm.weight"):
        before, gradient, after = (x[name].flatten() for x in (report.before, report.gradients, report.after))
        decay = report.decays[name]
        assert decay == (0.2 if report.before[name].ndim > 1 else 0.0)
        for i in range(0, len(before), 7):
            step = first_adamw_step(before[i].item(), gradient[i].item(), 0.004, 0.8, 0.95, decay)
            assert after[i].item() == pytest.approx(step["after"], abs=1e-6)
            assert step["after"] == pytest.approx(before[i].item() + step["shrink"] + step["move"])


def test_clipping_is_told():
    model = Transformer(TINY, seed=7)
    free, tight = optimizer_step(model, IDS, CONFIG), optimizer_step(model, IDS, CONFIG.replace(gradient_clip=0.01))
    assert free.clipped == 1.0 and tight.clipped == pytest.approx(0.01 / free.gradient_norm, rel=1e-3)
    total = torch.sqrt(sum(g.square().sum() for g in tight.gradients.values()))
    assert total.item() == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("name", ["learned", "separate heads", "rmsnorm, swiglu, grouped"])
def test_a_heads_matrices_make_its_queries_keys_and_values(name):
    from playground.model.forward_pass import trace

    config = VARIANTS[name].replace(qkv_bias=False, qk_norm=False)
    model = Transformer(config, seed=3)
    seen, state = trace(model, torch.tensor([IDS])), model.state_dict()
    for head in (0, 3):
        kv = head * config.kv_heads // config.n_heads
        x = seen["attn_in", 1][0]
        for kind, made in (("q", head), ("k", kv), ("v", kv)):
            part = head_matrix(config, kind, 1, head)
            weight = part.of(state[part.name])
            assert weight.shape == (config.d_head, config.d_model)
            assert torch.allclose(x @ weight.T, seen[kind, 1][0, :, made], atol=1e-5)
        part = head_matrix(config, "o", 1, head)
        assert part.of(state[part.name]).shape == (config.d_model, config.d_head)
