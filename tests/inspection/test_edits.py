"""Edits: each does what a NumPy model with that change does, and none leaves a trace in the stored model."""

import numpy as np
import pytest
import torch

from playground.data.baselines import IGNORE
from playground.inspection.cost import costliest, edit_cost, effect, expert_costs, removal_map, removed_part
from playground.inspection.edits import (
    EditCell,
    ForceExpert,
    RemoveMask,
    SwapPattern,
    SwitchOff,
    SwitchOffExperts,
    edits_tap,
    from_dict,
    to_dict,
)
from playground.model import Pass, Transformer
from playground.model.forward_pass import trace
from playground.training import evaluate
from playground.training.losses import WindowLosses
from playground.training.verdict import difference
from tests.model.configs import GPU, TINY, VARIANTS

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
EDITS = (
    SwitchOff(1, "head", 2),
    SwitchOff(0, "attention"),
    SwitchOff(1, "feed-forward"),
    SwitchOff(0, "layer"),
    EditCell(1, 0, 5, 2, 0.9),
    EditCell(0, 3, 4, 4, 0.0),
    SwapPattern(0, 1, "uniform"),
    SwapPattern(1, 1, "previous"),
)


def roughened(config, seed=3):
    """A model whose biases and gains are not the zeros and ones of a fresh one."""
    model = Transformer(config, seed=seed)
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn(parameter.shape, generator=rng)
    return model


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def numpy_model(model, ids, pattern_of=lambda layer, head, pattern: pattern, off=(), causal=True):
    """A pre-norm model in NumPy: `pattern_of` may replace patterns, `off` holds (layer, head | attention | …)."""
    w = {name: tensor.numpy().astype(np.float64) for name, tensor in model.state_dict().items()}
    c, T = model.config, len(ids)

    def norm(x, at):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + c.norm_eps) * w[f"{at}.weight"] + w[f"{at}.bias"]

    x = w["embedding.weight"][ids] + w["position_embedding.weight"][:T]
    for layer in range(c.n_layers):
        at = f"blocks.{layer}"
        qkv = norm(x, f"{at}.attention_norm") @ w[f"{at}.attention.qkv.weight"].T + w[f"{at}.attention.qkv.bias"]
        heads = []
        for head in range(c.n_heads):
            q, k, v = (qkv[:, (kind * c.n_heads + head) * c.d_head :][:, : c.d_head] for kind in range(3))
            scores = q @ k.T / np.sqrt(c.d_head)
            if causal:
                scores[np.triu_indices(T, 1)] = -np.inf
            pattern = pattern_of(layer, head, softmax(scores))
            heads.append((0.0 if (layer, head) in off else 1.0) * (pattern @ v))
        out = np.concatenate(heads, 1) @ w[f"{at}.attention.out.weight"].T + w[f"{at}.attention.out.bias"]
        x = x + (0.0 if (layer, "attention") in off else 1.0) * out
        up = norm(x, f"{at}.feedforward_norm") @ w[f"{at}.feedforward.up.weight"].T + w[f"{at}.feedforward.up.bias"]
        hidden = torch.nn.functional.gelu(torch.tensor(up)).numpy()
        out = hidden @ w[f"{at}.feedforward.down.weight"].T + w[f"{at}.feedforward.down.bias"]
        x = x + (0.0 if (layer, "feed-forward") in off else 1.0) * out
    return softmax(norm(x, "final_norm") @ w["head.weight"].T)


def after(model, *edits):
    return effect(model, IDS, edits_tap(edits, model.config)).after.numpy()


def test_switching_off_equals_a_model_without_the_part():
    model, ids = roughened(TINY), IDS[0].numpy()
    for edit, off in (
        (SwitchOff(1, "head", 2), [(1, 2)]),
        (SwitchOff(0, "attention"), [(0, "attention")]),
        (SwitchOff(1, "feed-forward"), [(1, "feed-forward")]),
        (SwitchOff(0, "layer"), [(0, "attention"), (0, "feed-forward")]),
    ):
        assert np.allclose(after(model, edit), numpy_model(model, ids, off=off)[-1], atol=1e-5), edit
    both = after(model, SwitchOff(1, "head", 2), SwitchOff(0, "head", 0))
    assert np.allclose(both, numpy_model(model, ids, off=[(1, 2), (0, 0)])[-1], atol=1e-5)


def test_pattern_edits_equal_a_numpy_model_with_that_pattern():
    model, ids = roughened(TINY), IDS[0].numpy()

    def with_cell(layer, head, pattern):
        if (layer, head) == (0, 3):
            row, others = pattern[7], np.arange(8) != 2
            row[2] = 0.9
            row[others] *= 0.1 / row[others].sum()
        return pattern

    expected = numpy_model(model, ids, with_cell)[-1]
    assert np.allclose(after(model, EditCell(0, 3, 7, 2, 0.9)), expected, atol=1e-5)

    def uniform(layer, head, pattern):
        return np.tril(np.ones((8, 8))) / np.arange(1, 9)[:, None] if (layer, head) == (0, 1) else pattern

    def previous(layer, head, pattern):
        shifted = np.eye(8, k=-1)
        shifted[0, 0] = 1
        return shifted if (layer, head) == (1, 1) else pattern

    assert np.allclose(after(model, SwapPattern(0, 1)), numpy_model(model, ids, uniform)[-1], atol=1e-5)
    assert np.allclose(after(model, SwapPattern(1, 1, "previous")), numpy_model(model, ids, previous)[-1], atol=1e-5)


def test_without_the_mask_it_is_the_same_weights_in_a_model_that_sees_the_future():
    for name in ("learned", "rotary", "post-norm", "rmsnorm, swiglu, grouped", "experts"):
        config = VARIANTS[name]
        model = Transformer(config, seed=2)
        open_model = Transformer(config.replace(causal=False))
        open_model.load_state_dict(model.state_dict())
        found = effect(model, IDS[:, :5], edits_tap([RemoveMask()], model.config))
        assert torch.allclose(found.after, open_model(IDS[:, :5]).logits[0, -1].softmax(-1), atol=1e-5)
    model = roughened(TINY)
    only_last = trace(model, IDS, edit=edits_tap([RemoveMask(1)], TINY))
    assert only_last["pattern", 0].triu(1).abs().max() == 0 and only_last["pattern", 1].triu(1).max() > 0
    # a cell above the diagonal can be set once the mask is gone
    seen = trace(model, IDS, edit=edits_tap([RemoveMask(), EditCell(1, 0, 1, 6, 0.7)], TINY))
    assert seen["pattern", 1][0, 0, 1, 6].item() == pytest.approx(0.7)
    assert seen["pattern", 1][0, 0, 1].sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_stored_model_is_bit_for_bit_what_it_was(config):
    model = Transformer(config, seed=5)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    edits = EDITS if not config.causal else (*EDITS, RemoveMask())
    with torch.no_grad():
        outputs = model(IDS).logits
    windows = IDS.repeat(3, 1)
    removal_map(model, windows, windows.roll(-1, 1))
    if config.n_experts > config.experts_per_token:
        edits += (SwitchOffExperts(1, (1,)), ForceExpert(1, 2))
        expert_costs(model, windows, windows.roll(-1, 1))
    found = effect(model, IDS, edits_tap(edits, model.config))
    assert torch.equal(found.before, outputs[0, -1].softmax(-1)) and not torch.allclose(found.after, found.before)
    with torch.no_grad():
        assert torch.equal(model(IDS).logits, outputs)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_effect_is_told_in_nats_and_is_finite_where_a_prediction_is_ruled_out():
    model = roughened(TINY)
    found = effect(model, IDS, edits_tap([SwitchOff(1, "head", 2)], TINY))
    p, q = found.before.numpy().astype(float), found.after.numpy().astype(float)
    assert found.divergence == pytest.approx((p * np.log(p / q)).sum(), abs=1e-6)
    plain = numpy_model(model, IDS[0].numpy(), off=[(1, 2)])
    assert found.loss_after == pytest.approx(-np.log(plain[np.arange(7), IDS[0, 1:].numpy()]).mean(), abs=1e-5)
    assert found.loss_before == pytest.approx(evaluate(model, IDS[:, :-1], IDS[:, 1:]), abs=1e-5)
    alone = effect(model, IDS[:, :1], edits_tap([SwitchOff(0, "head", 0)], TINY))
    assert alone.loss_before is None and alone.loss_after is None
    assert effect(model, IDS, edits_tap([], TINY)).divergence == pytest.approx(0.0, abs=1e-6)
    found = effect(model, IDS, lambda name, layer, x: x * 1e4 if name == "final" else x)
    assert 0.0 in found.after.tolist() and 100 < found.divergence < float("inf")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (SwitchOff(2, "head", 0), "no layer 2"),
        (SwitchOff(0, "head", 4), "no head 4"),
        (SwitchOff(0, "soul"), "cannot.*switched"),
        (EditCell(0, 0, 2, 5, 0.5), "comes after"),
        (EditCell(0, 0, 11, 5, 0.5), "outside.*8"),
        (EditCell(0, 0, 99, 5, 0.5), "no token 99"),
        (EditCell(0, 0, 3, 2, 1.5), "between 0 and 1"),
        (EditCell(0, 0, 0, 0, 0.5), "other token"),
        (SwapPattern(0, 0, "spiral"), "no pattern"),
        (RemoveMask(7), "no layer 7"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(edit, words):
    with pytest.raises(ValueError, match=words):
        effect(Transformer(TINY), IDS, edits_tap([edit], TINY))


def test_edits_travel_as_plain_values_and_what_models_or_texts_lack_is_a_sentence():
    with pytest.raises(ValueError, match=r"none.*remove"):
        edits_tap([RemoveMask()], TINY.replace(causal=False))
    model = Transformer(TINY)
    with pytest.raises(ValueError, match="prompt only"):
        edit_cost(model, *windows(TINY), [EditCell(0, 0, 3, 2, 0.5)])
    for edit in (*EDITS, RemoveMask(), RemoveMask(1)):
        assert from_dict(to_dict(edit)) == edit
    for bad in (None, [], {}, {"kind": "off"}, {"kind": "os"}, {"kind": "off", "layer": "0"},
                {"kind": "cell", "layer": 0, "head": 0, "query": 1, "key": 0, "value": True},
                {"kind": "mask", "layer": 0, "more": 1}, {"kind": "pattern", "layer": True, "head": 0}):  # fmt: skip
        with pytest.raises(ValueError, match="no edit"):
            from_dict(bad)


def windows(config, n=5, T=9):
    rng = torch.Generator().manual_seed(0)
    chunk = torch.randint(config.vocab_size, (n, T + 1), generator=rng)
    targets = chunk[:, 1:].clone()
    targets[-1, 4:] = IGNORE
    return chunk[:, :-1], targets


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_removal_map_equals_removing_one_part_at_a_time(config, monkeypatch):
    model = roughened(config).to(GPU)
    x, y = windows(config)
    monkeypatch.setattr("playground.inspection.cost.ROWS_AT_ONCE", 150)  # so that windows come in several chunks
    found = removal_map(model, x, y)
    whole = evaluate(model, x, y)
    assert found.before == pytest.approx(whole, abs=1e-5) and found.tokens == int((y != IGNORE).sum())
    table = found.costs
    assert found.first.shape == (config.n_layers, config.n_heads)
    for layer in range(config.n_layers):
        for column in range(config.n_heads + 2):
            part = removed_part(layer, column, config.n_heads)
            logits = model(x, Pass(tap=edits_tap([part], config))).logits.cpu()
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=IGNORE).item()
            assert table[layer, column].item() == pytest.approx(loss - whole, abs=2e-5), part
    cost = edit_cost(model, x, y, [SwitchOff(1, "head", 3)])
    assert cost.difference == pytest.approx(table[1, 3].item(), abs=2e-5)
    assert cost.margin == pytest.approx(found.margins[1, 3].item(), abs=5e-5)


def test_the_costliest_part_is_told_from_others_by_their_differences_on_each_window():
    """Its own interval is wide, since windows differ; what lies below it in every one is told from it all the same."""
    counted, luck = torch.full((20,), 10), torch.linspace(0, 40, 20)
    beside = torch.linspace(-1, 1, 20).roll(7)
    losses = [WindowLosses(total, counted) for total in (luck, luck + 5, luck + 4.9 + beside, luck + 3)]
    assert costliest(losses).tolist() == [False, True, True, False]
    assert difference(WindowLosses(0 * luck, counted), losses[1])[1] > 0.5
    one = [WindowLosses(each.total[:1], counted[:1]) for each in losses]
    assert costliest(one).all() and costliest(one[:1]).all(), "a single window tells nothing"
