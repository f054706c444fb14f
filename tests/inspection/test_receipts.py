"""Receipts: the worked example to all its digits, each number against loops, and the head that is taken home."""

import cmath
import math
import sys

import numpy as np
import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.inspection import Look, look
from playground.inspection.byhand import attend
from playground.inspection.edits import SwitchOff, edits_tap
from playground.inspection.example import EXAMPLES, worked_example
from playground.inspection.receipts import head_arrays, receipt
from playground.model import ModelConfig, Transformer, trace
from playground.storage import Checkpoint
from playground.training import History
from tests.model.configs import GPU, VARIANTS

IDS = [1, 2, 3, 1, 2, 4, 0]


def look_at(config: ModelConfig, ids=IDS, seed: int = 3) -> Look:
    """A look by a model whose every weight, biases and gains too, is off its initial value."""
    model, rng = Transformer(config, seed=seed), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn(parameter.shape, generator=rng))
    return look(Checkpoint(model.to(GPU), CharTokenizer("abcdefghij"), History()), ids)


def by_loops(seen: Look, layer: int, head: int, query: int) -> tuple[list[float], list[float], np.ndarray]:
    """Scores, weights and blend of one row of the layer's input, number by number; rotation by complex numbers."""
    config, state = seen.config, {n: t.double().numpy() for n, t in seen.model.state_dict().items()}
    at, D, H, Hkv = f"blocks.{layer}.attention", config.d_head, config.n_heads, config.kv_heads
    x = seen.trace["attn_in", layer][0].double().numpy()

    def project(kind: str, token: int) -> list[float]:
        which = head if kind == "q" else head * Hkv // H
        if config.attention_layout == "separate_heads":
            name, first = f"{at}.heads.{which}.{kind}", 0
        else:
            name, first = f"{at}.qkv", {"q": 0, "k": H, "v": H + Hkv}[kind] * D + which * D
        bias = state.get(f"{name}.bias")
        vector = [
            sum(float(a) * float(b) for a, b in zip(state[f"{name}.weight"][first + i], x[token]))
            + (0.0 if bias is None else float(bias[first + i]))
            for i in range(D)
        ]
        if config.qk_norm and kind != "v":
            size = math.sqrt(sum(n * n for n in vector) / D + config.norm_eps)
            vector = [n / size * float(g) for n, g in zip(vector, state[f"{at}.{kind}_norm.weight"])]
        if config.positions == "rotary" and kind != "v":
            turned = [
                complex(vector[i], vector[i + D // 2]) * cmath.exp(1j * token * config.rotary_base ** (-2 * i / D))
                for i in range(D // 2)
            ]
            vector = [pair.real for pair in turned] + [pair.imag for pair in turned]
        return vector

    q = project("q", query)
    seen_by = range(query + 1) if config.causal else range(len(x))
    scores = [sum(a * b for a, b in zip(q, project("k", j))) / math.sqrt(D) for j in seen_by]
    total = sum(math.exp(s) for s in scores)
    weights = [math.exp(s) / total for s in scores]
    blend = sum(w * np.array(project("v", j)) for w, j in zip(weights, seen_by))
    return scores, weights, blend


def of_example(name: str) -> Look:
    checkpoint = worked_example(name)
    return look(checkpoint, checkpoint.tokenizer.encode(EXAMPLES[name].prompt))


def test_the_pronoun_looks_at_its_animal_and_whoever_changes_the_example_changes_a_copy():
    seen = of_example("pronoun")
    receipts = [receipt(seen, 0, 0, 2, key) for key in range(3)]
    e = math.exp(4 / math.sqrt(2))  # the query (2, 0) meets the cat's key (2, 0)
    assert [r.dot for r in receipts] == [4, 0, 0]
    assert [r.weight for r in receipts] == pytest.approx([e / (e + 2), 1 / (e + 2), 1 / (e + 2)], abs=1e-15)
    assert receipts[0].weight > 0.85
    written = attend(head_arrays(seen, 0, 0))["out"][2]
    assert written.tolist() == pytest.approx([0, 0, 0, 2 * e / (e + 2)])
    assert (seen.trace["ff_hidden", 0][0].abs() > 0.5).sum(dim=-1).tolist() == [1, 1, 1]
    words = seen.checkpoint.tokenizer.words
    usual = seen.trace["logits"][0, -1].softmax(dim=-1)
    broken = trace(seen.model, torch.tensor([seen.ids]), edit=edits_tap([SwitchOff(0, "head", 0)], seen.config))
    without = broken["logits"][0, -1].softmax(dim=-1)
    for says, word in ((usual, "purrs"), (without, "rains")):
        assert words[int(says.argmax())] == word and says.max() > 0.9
    for place, word in enumerate(("sleeps", "it")):
        assert words[int(seen.trace["logits"][0, place].argmax())] == word
    mine = worked_example("pronoun")
    with torch.no_grad():
        mine.model.embedding.weight.zero_()
    mine.about["prompt"] = "rains"
    assert worked_example("pronoun").model.embedding.weight.any()
    assert worked_example("pronoun").about["prompt"] == EXAMPLES["pronoun"].prompt


def test_the_notebooks_numbers_come_out_to_all_their_digits():
    seen = of_example("notebook")
    rows = [[receipt(seen, 0, 0, i, j) for j in range(3)] for i in range(3)]
    assert np.round([row[0].q for row in rows], 8).tolist() == [[0.01, 0.07], [0.11, 0.05], [-0.01, 0.01]]
    assert np.round([cell.k for cell in rows[0]], 8).tolist() == [[0.07, 0.07], [0.11, 0.05], [0.0, 0.01]]
    assert np.round([cell.v for cell in rows[0]], 8).tolist() == [[0.05, 0.07], [0.07, 0.05], [-0.01, 0.03]]
    assert [[round(cell.weight, 8) for cell in row] for row in rows] == [
        [1, 0, 0],
        [0.49939896, 0.50060104, 0],
        [0.33337261, 0.3332312, 0.33339619],
    ]
    blends = [[0.05, 0.07], [0.06001202, 0.05998798], [0.03666085, 0.04999953]]
    assert np.round([row[0].z for row in rows], 8).tolist() == blends
    # the model's own forward says the same, so the example is a model like any other
    assert np.round(seen.trace["z", 0][0, :, 0].numpy(), 8).tolist() == blends
    assert max(cell.largest_difference for row in rows for cell in row) < 1e-15


@pytest.mark.parametrize("name", VARIANTS)
def test_every_number_of_a_receipt_is_what_loops_say(name):
    seen = look_at(VARIANTS[name])
    for layer, head, query, key in ((0, 1, 4, 2), (1, 3, 6, 0), (1, 2, 0, 0)):
        scores, weights, blend = by_loops(seen, layer, head, query)
        r = receipt(seen, layer, head, query, key)
        assert r.score == pytest.approx(scores[key], abs=1e-9)
        assert r.products.sum() == pytest.approx(r.dot) and r.dot / math.sqrt(len(r.q)) == pytest.approx(r.score)
        assert r.row_maximum == pytest.approx(max(scores), abs=1e-9)
        assert r.exponential == pytest.approx(math.exp(scores[key] - max(scores)), abs=1e-9)
        assert r.exponential / r.exponential_sum == pytest.approx(r.weight)
        assert r.weight == pytest.approx(weights[key], abs=1e-9)
        assert np.allclose(r.part, weights[key] * r.v) and np.allclose(r.z, blend, atol=1e-9)
        D = seen.config.d_head
        out = seen.model.blocks[layer].attention.out.weight[:, head * D : (head + 1) * D].detach().double().numpy()
        assert np.allclose(r.part_out, out @ r.part)
        assert np.allclose(attend(head_arrays(seen, layer, head))["out"][query], out @ blend, atol=1e-9)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_last_line_is_the_distance_to_the_model_itself(name):
    seen = look_at(VARIANTS[name])
    r = receipt(seen, 1, 2, 5, 1)
    assert 0 < r.largest_difference < 2e-5
    # and it would be seen if the model had computed anything else
    for which, what in (("pattern", "pattern"), ("z", "z"), ("attn_out", "attn_out"), ("q", "q"), ("v", "v")):
        tampered = seen.trace[which, 1]
        tampered += 0.5
        assert receipt(seen, 1, 2, 5, 1).differences[what] == pytest.approx(0.5, abs=1e-3)
        tampered -= 0.5


def test_one_token_a_hidden_cell_and_nothing_to_look_at():
    r = receipt(look_at(VARIANTS["rotary"]), 0, 0, 2, 5)
    assert not r.visible and r.weight == 0 and r.exponential == 0 and not r.part_out.any() and math.isfinite(r.score)
    assert receipt(look_at(VARIANTS["sees the future"]), 0, 0, 2, 5).weight > 0
    assert receipt(look_at(VARIANTS["learned"], ids=[3]), 0, 0, 0, 0).weight == 1
    with pytest.raises(ValueError, match=r"prompt.*empty"):
        look_at(VARIANTS["learned"], ids=[])
    with pytest.raises(ValueError, match=r"fit.*context"):
        look_at(VARIANTS["learned"], ids=[1] * 13)


@pytest.mark.parametrize("place", [(2, 0, 0, 0), (0, 4, 0, 0), (0, 0, 7, 0), (0, 0, 0, -1)])
def test_a_place_that_is_not_there_is_a_sentence(place):
    with pytest.raises(ValueError, match=r"counted.*0"):
        receipt(look_at(VARIANTS["learned"]), *place)


def test_a_long_prompt_keeps_no_patterns_and_makes_the_same_ones(monkeypatch):
    short = look_at(VARIANTS["rmsnorm, swiglu, grouped"])
    monkeypatch.setattr(sys.modules[Look.__module__], "KEPT_CELLS", 10)
    long = look_at(VARIANTS["rmsnorm, swiglu, grouped"])
    assert ("pattern", 0) not in long.trace and long.nbytes < short.nbytes
    for layer in range(2):
        assert torch.allclose(long.pattern(layer), short.trace["pattern", layer][0], atol=1e-6)
        assert torch.allclose(long.scores(layer), short.trace["scores", layer][0], atol=1e-5)
    assert receipt(long, 1, 2, 5, 1).largest_difference < 2e-5
