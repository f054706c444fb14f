"""The walk: every step of every config, its shapes, numbers and sizes against a forward pass written out in NumPy."""

import math

import numpy as np
import pytest
import torch

from playground.inspection.sizes import activations, compute
from playground.inspection.walk import step, step_names
from playground.model import ModelConfig, Transformer, trace
from tests.inspection.test_receipts import IDS, by_loops, look_at
from tests.model.configs import VARIANTS

PLACE = (1, 2, 4, 2)  # layer, head, query, key


def forward(seen, layer: int) -> dict[str, np.ndarray]:
    """Every vector of one layer from what enters it, in NumPy; for layernorm or RMSNorm, pre or post, dense models."""
    config, w = seen.config, {n: t.double().numpy() for n, t in seen.model.state_dict().items()}
    at = f"blocks.{layer}"

    def norm(x, name):
        if config.norm == "layernorm":
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + config.norm_eps)
            return x * w[f"{name}.weight"] + w.get(f"{name}.bias", 0.0)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config.norm_eps) * w[f"{name}.weight"]

    pre = config.norm_placement == "pre"
    x = seen.trace["resid_pre", layer][0].double().numpy()
    D, H = config.d_head, config.n_heads
    z = np.zeros((len(x), H, D))
    for head in range(H):
        for query in range(len(x)):
            z[query, head] = by_loops(seen, layer, head, query)[2]
    attention = z.reshape(len(x), -1) @ w[f"{at}.attention.out.weight"].T + w.get(f"{at}.attention.out.bias", 0.0)
    mid = x + attention if pre else norm(x + attention, f"{at}.attention_norm")
    read = norm(mid, f"{at}.feedforward_norm") if pre else mid
    up = read @ w[f"{at}.feedforward.up.weight"].T + w.get(f"{at}.feedforward.up.bias", 0.0)
    if config.activation == "swiglu":
        gate = read @ w[f"{at}.feedforward.gate.weight"].T + w.get(f"{at}.feedforward.gate.bias", 0.0)
        hidden = gate / (1 + np.exp(-gate)) * up
    else:
        bends = {
            "gelu": np.vectorize(lambda a: a * 0.5 * (1 + math.erf(a / math.sqrt(2)))),
            "relu": lambda a: np.maximum(a, 0),
            "relu2": lambda a: np.maximum(a, 0) ** 2,
        }
        hidden = bends[config.activation](up)
    thought = hidden @ w[f"{at}.feedforward.down.weight"].T + w.get(f"{at}.feedforward.down.bias", 0.0)
    post = mid + thought if pre else norm(mid + thought, f"{at}.feedforward_norm")
    logits = norm(post, "final_norm") @ w["head.weight"].T + w.get("head.bias", 0.0)
    return {"x": x, "z": z, "attention": attention, "mid": mid, "hidden": hidden, "thought": thought, "logits": logits}


@pytest.mark.parametrize("name", ["learned", "post-norm", "rmsnorm, swiglu, grouped", "one key head, qk-norm, relu2"])
def test_the_numbers_are_those_of_an_independent_forward(name):
    seen = look_at(VARIANTS[name])
    layer, head, query, _ = PLACE
    own = forward(seen, layer)
    scores, weights, blend = by_loops(seen, layer, head, query)

    def arrays(at):
        return step(seen, at, *PLACE).arrays

    near = {"atol": 2e-5}
    assert np.allclose(arrays("arrive")["stream"], own["x"], **near)
    assert np.allclose(arrays("scores")["scores"][query, : query + 1], scores, **near)
    masked = arrays("mask")["scores"]
    assert np.isneginf(masked[np.triu_indices(len(IDS), 1)]).all()
    assert np.allclose(masked[query, : query + 1], scores, **near)
    assert np.allclose(arrays("softmax")["pattern"][query, : query + 1], weights, **near)
    assert np.allclose(arrays("mix")["parts"].sum(axis=0), blend, **near)
    assert np.allclose(arrays("mix")["z"], blend, **near)
    assert np.allclose(arrays("output")["out"], own["attention"][query], **near)
    w = seen.model.blocks[layer].attention.out.weight.detach().double().numpy()
    written = [w[:, 4 * h : 4 * h + 4] @ own["z"][query, h] for h in range(4)]
    assert np.allclose(arrays("output")["written"], written, **near)
    change = arrays("add")
    assert np.allclose(change["delta"], np.linalg.norm(own["mid"] - own["x"], axis=1), **near)
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(own["x"], own["mid"])]
    assert np.allclose(change["cosine"], cosines, **near)
    assert change["most"][query] == int(np.argmax(weights))
    mlp = step(seen, "mlp", *PLACE)
    for neuron, value in zip(mlp.facts["neurons"], mlp.arrays["values"]):
        assert value == pytest.approx(own["hidden"][query, neuron], abs=2e-4)
    exact = np.exp(own["logits"][query]) / np.exp(own["logits"][query]).sum()
    predict = arrays("predict")
    order = np.argsort(-exact)[: len(predict["tokens"])]
    assert predict["tokens"].tolist() == order.tolist() and np.allclose(
        predict["probabilities"], exact[order], atol=1e-4
    )
    facts = step(seen, "predict", *PLACE).facts
    assert facts["next_token"] == IDS[query + 1]
    assert facts["next_loss"] == pytest.approx(-math.log(exact[IDS[query + 1]]), abs=1e-4)
    assert facts["next_rank"] == 1 + int((exact > exact[IDS[query + 1]]).sum())
    assert step(seen, "predict", *PLACE[:2], len(IDS) - 1, 0).facts == {"next_token": None}


def test_the_embedding_is_the_tables_row():
    seen = look_at(VARIANTS["learned"])
    w = seen.model.state_dict()
    own = (w["embedding.weight"][list(seen.ids)] + w["position_embedding.weight"][: seen.length]).double().numpy()
    for layer in (0, 1):
        assert np.allclose(step(seen, "embed", layer, *PLACE[1:]).arrays["stream"], own, atol=1e-6)
    assert "arrive" not in step_names(seen, 0)


def test_rotation_experts_and_weights_of_a_step_are_those_of_the_pass():
    seen = look_at(VARIANTS["rotary"])
    layer, head, query, key = PLACE
    facts = step(seen, "rotate", *PLACE).facts
    score = seen.scores(layer)[head, query, key].item() * math.sqrt(seen.config.d_head)
    assert facts["product"] == pytest.approx(score, abs=1e-5) == facts["both_later"]
    assert abs(facts["query_later"] - facts["product"]) > 0.05
    seen = look_at(VARIANTS["experts"])
    mlp = step(seen, "mlp", *PLACE)
    probabilities = mlp.arrays["values"]
    assert probabilities.sum() == pytest.approx(1, abs=1e-6)
    best = sorted(np.argsort(-probabilities)[:2].tolist())
    assert np.flatnonzero(mlp.arrays["chosen"]).tolist() == best == sorted(mlp.facts["experts"])
    assert sum(mlp.facts["weights"]) == pytest.approx(1, abs=1e-6)
    config = ModelConfig(vocab_size=11, context_length=40, n_layers=1, d_model=8, n_heads=2)
    seen = look_at(config, [i % 10 for i in range(40)])
    mix = step(seen, "mix", 0, 0, 39, 0)
    assert len(mix.arrays["parts"]) == 11 and len(mix.facts["watched"]) == 10 and mix.facts["others"] == 30
    assert np.allclose(mix.arrays["parts"].sum(axis=0), seen.trace["z", 0][0, 39, 0].numpy(), atol=1e-6)
    seen = look_at(VARIANTS["sees the future"])
    mask = step(seen, "mask", *PLACE)
    assert np.isfinite(mask.arrays["scores"]).all() and torch.isfinite(seen.pattern(1)).all()
    layer, head, query, _ = PLACE
    later = seen.pattern(layer)[head, query, query + 1 :].sum().item()
    assert mask.facts["weight_on_later"] == pytest.approx(later, abs=1e-6) and later > 0
    assert step(look_at(VARIANTS["learned"]), "mask", *PLACE).facts["weight_on_later"] == 0


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
