"""The walk and the logit lens: facts beside pictures, parameters and operations by part, and the stream in NumPy."""

import math

import numpy as np
import pytest
import torch

from playground.inspection.lens import logit_lens
from playground.inspection.sizes import parts
from playground.inspection.walk import step
from playground.model import ModelConfig, Transformer
from playground.model.forward_pass import trace
from tests.inspection.test_receipts import IDS, look_at
from tests.model.configs import GPU, TINY, VARIANTS

PLACE = (1, 2, 4, 2)  # layer, head, query, key


def test_the_token_that_follows_has_its_rank_and_loss():
    """That each picture shows the model's numbers, the printed code proves: see tests/words/test_golden.py."""
    seen, query = look_at(VARIANTS["learned"]), PLACE[2]
    logits = seen.trace["logits"][0, query].double().numpy()
    exact = np.exp(logits) / np.exp(logits).sum()
    facts = step(seen, "predict", *PLACE).facts
    assert facts["next_token"] == IDS[query + 1]
    assert facts["next_loss"] == pytest.approx(-math.log(exact[IDS[query + 1]]), abs=1e-9)
    assert facts["next_rank"] == 1 + int((exact > exact[IDS[query + 1]]).sum())
    assert step(seen, "predict", *PLACE[:2], len(IDS) - 1, 0).facts == {"next_token": None}


def test_rotation_and_weights_of_a_step_are_those_of_the_pass():
    seen = look_at(VARIANTS["rotary"])
    layer, head, query, key = PLACE
    facts = step(seen, "rotate", *PLACE).facts
    score = seen.scores(layer)[head, query, key].item() * math.sqrt(seen.config.d_head)
    assert facts["product"] == pytest.approx(score, abs=1e-5) == facts["both_later"]
    assert abs(facts["query_later"] - facts["product"]) > 0.05
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
def test_parameters_and_operations_by_part_are_all_there_are(name):
    config = VARIANTS[name]
    found = parts(config, 9)
    assert sum(part.parameters for part in found) == config.n_parameters
    assert sum(part.operations for part in found) == config.flops_per_token(9)
    longer = [part.name for part, more in zip(found, parts(config, 10)) if part.operations != more.operations]
    assert longer == ["attention"] and found[2].operations > 0


WINDOW = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_last_stage_is_the_models_own_answer(config):
    model = Transformer(config, seed=4).to(GPU)
    probabilities = model(WINDOW).logits[0].softmax(-1).cpu()
    lens = logit_lens(model, trace(model, WINDOW))
    assert torch.equal(lens.best[-1], probabilities.argmax(-1)) and (lens.ranks[-1] == 1).all()
    assert torch.allclose(lens.probabilities[-1], probabilities.max(-1).values, atol=1e-5)


def test_an_early_stage_is_what_numpy_reads_out_of_the_stream():
    model = Transformer(TINY, seed=4)
    with torch.no_grad():
        model.final_norm.weight.uniform_(0.5, 2.0)
        model.final_norm.bias.uniform_(-1.0, 1.0)
    seen = trace(model, WINDOW)
    lens, answers = logit_lens(model, seen), seen["logits"][0].argmax(-1).numpy()
    state = {name: tensor.numpy().astype(np.float64) for name, tensor in model.state_dict().items()}
    for stage, name in enumerate(("resid_pre", "resid_post")):
        stream = seen[name, 0][0].numpy().astype(np.float64)
        centred = stream - stream.mean(1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(1, keepdims=True) + TINY.norm_eps)
        logits = (normed * state["final_norm.weight"] + state["final_norm.bias"]) @ state["head.weight"].T
        chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert np.allclose(lens.probabilities[stage], chances[np.arange(8), answers], atol=1e-5)
        order = np.argsort(-logits, axis=1)
        assert np.array_equal(lens.best[stage], order[:, 0])
        assert np.array_equal(lens.ranks[stage], 1 + np.argmax(order == answers[:, None], axis=1))
