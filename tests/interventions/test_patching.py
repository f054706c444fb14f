"""Patching gives the other run and direct effects add up; circuits are found and checked against passes one by one."""

from functools import cache

import numpy as np
import pytest
import torch

from playground.data.sentences import SENTENCES
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.engine import SamplingConfig, generate
from playground.inspection import look
from playground.inspection.edits import edits_tap
from playground.inspection.heads import head_scores
from playground.interventions.circuit import Node, Runs, find_circuit, nodes_of
from playground.interventions.direct import readout
from playground.interventions.pairs import WRITTEN, found_pairs, fresh_pairs, words_of, written_pairs
from playground.interventions.patching import (
    Donor,
    Pair,
    Patch,
    counted,
    donated,
    pair_of,
    patch_from,
    patch_map,
    run,
    values_of,
)
from playground.interventions.steering import Steer, difference_of_means, steering_curve, steering_tap
from playground.model import Pass, Transformer, no_tap, trace
from playground.service.texts import unseen
from playground.storage import load
from playground.studies.slips import CHECKPOINTS
from tests.inspection.test_edits import roughened
from tests.model.configs import CAUSAL, TINY, VARIANTS

IDS, OTHER = [3, 1, 4, 1, 5, 9], [3, 1, 8, 1, 5, 2]
PRE_NORM = {name: config for name, config in VARIANTS.items() if config.norm_placement == "pre"}
MIXTURES = {name: config for name, config in VARIANTS.items() if config.n_experts}


def logits(model, ids, edits=()):
    with torch.no_grad():
        return model(torch.tensor([ids]), Pass(tap=edits_tap(edits, model.config))).logits


def everything(model, ids):
    """Patches of all parts that are added to the stream, and of the embeddings."""
    places, layers, there = range(len(ids)), range(model.config.n_layers), run(model, [ids])
    each = [Patch(0, "residual", place, there["resid_pre", 0][0, place]) for place in places]
    for layer in layers:
        z, ff_out = there["z", layer][0], there["ff_out", layer][0]
        each += [Patch(layer, "head", place, z[place, h], h) for place in places for h in range(z.shape[1])]
        each += [Patch(layer, "mlp", place, ff_out[place]) for place in places]
    return each


@pytest.mark.parametrize("name", VARIANTS)
def test_patching_everything_gives_the_other_run_and_nothing_changes_nothing_to_the_bit(name):
    model = roughened(VARIANTS[name])
    here, there = (run(model, [ids])["logits"] for ids in (IDS, OTHER))
    assert torch.equal(logits(model, IDS, everything(model, OTHER)), there)
    assert torch.equal(logits(model, IDS, everything(model, IDS)), here) and not torch.equal(here, there)
    assert edits_tap([], model.config) is no_tap


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("part", ["residual", "head", "mlp", "expert"])
def test_every_cell_of_the_map_is_a_pass_with_that_patch(name, part):
    model = roughened(VARIANTS[name])
    pair = pair_of(model, IDS, OTHER)
    if part == "expert" and not model.config.n_experts:
        with pytest.raises(ValueError, match="dense model"):
            patch_map(model, pair, part)
        return
    found, own = patch_map(model, pair, part), pair.difference(logits(model, IDS)[0, -1])
    there = run(model, [OTHER])
    assert found.here == pytest.approx(float(own), abs=1e-5)
    for row, place in ((0, 5), (len(found.rows) - 1, 5), (1, 2)):
        layer, index = found.rows[row]
        after = logits(model, IDS, [patch_from(model, there, layer, part, place, index)])
        assert found.effects[row, place] == pytest.approx(float(pair.difference(after[0, -1]) - own), abs=1e-4)


@pytest.mark.parametrize("name", PRE_NORM)
def test_direct_effects_of_all_parts_sum_to_that_of_the_whole_stream(name):
    model, last = roughened(PRE_NORM[name]), VARIANTS[name].n_layers - 1
    pair = pair_of(model, IDS, OTHER)
    before, after = (run(model, [ids])["resid_post", last][0, -1] for ids in (IDS, OTHER))
    whole = float((after - before) @ readout(model, before, pair.answer, pair.foil))
    stream, heads, mlps = (patch_map(model, pair, part, direct=True).effects for part in ("residual", "head", "mlp"))
    assert stream[0].sum() + heads.sum() + mlps.sum() == pytest.approx(whole, abs=1e-4)
    assert not any(effects[:, :-1].any() for effects in (stream, heads, mlps)), "only the last token is read"


@pytest.mark.parametrize("donor", Donor)
def test_each_donor_gives_the_value_that_it_says(donor):
    model, pair = roughened(TINY), Pair(tuple(IDS), tuple(OTHER), 2, 7)
    texts = torch.randint(0, 11, (3, 8), generator=torch.Generator().manual_seed(1))
    found = patch_map(model, pair, "mlp", donor, texts=texts)
    ran = run(model, [OTHER] if donor is Donor.OTHER else texts[:, :6])["ff_out", 1][:, 4]
    if donor is Donor.ZERO:
        ran = torch.zeros(1, 16)
    elif donor is Donor.MEAN:
        ran = run(model, texts[:, :6])["ff_out", 1].mean(dim=(0, 1))[None]
    runs = [pair.difference(logits(model, IDS, [Patch(1, "mlp", 4, value)])[0, -1]) for value in ran]
    assert found.effects[1, 4] == pytest.approx(float(torch.stack(runs).mean()) - found.here, abs=1e-4)
    first = patch_from(model, donated(model, pair, donor, texts), 1, "mlp", 4, donor=donor)
    assert torch.allclose(first.value, ran[0], atol=1e-6)


@pytest.mark.parametrize("name", MIXTURES)
def test_patching_all_experts_is_patching_what_they_add(name):
    model = roughened(MIXTURES[name])
    layer, E = 1, model.config.n_experts
    trace = run(model, [IDS])
    shares = values_of(model, trace, "expert", layer)  # (1, T, E, d)
    mixture, x = model.blocks[layer].feedforward, trace["ff_in", layer]
    with torch.inference_mode():
        shared = mixture.shared.down(mixture.shared.hidden(x)) if model.config.shared_expert else 0.0
    assert torch.allclose(shares.sum(dim=2) + shared, trace["ff_out", layer], atol=1e-5)
    idle = torch.ones(1, 6, E, dtype=torch.bool).scatter(2, trace["experts", layer], False)
    assert not shares[idle].any(), "an expert adds nothing to a token that does not use it"
    if not model.config.shared_expert:
        there = run(model, [OTHER])
        each = [patch_from(model, there, layer, "expert", 5, expert) for expert in range(E)]
        whole = [patch_from(model, there, layer, "mlp", 5)]
        assert torch.allclose(logits(model, IDS, each), logits(model, IDS, whole), atol=1e-4)
        assert counted(model.config, "expert") == E


def test_prompts_that_make_no_pair_say_why_and_one_token_is_enough():
    model = Transformer(TINY)
    with pytest.raises(ValueError, match="have 6 and 5 tokens"):
        pair_of(model, IDS, OTHER[1:])
    with pytest.raises(ValueError, match="the same"):
        pair_of(model, IDS, IDS)
    with pytest.raises(ValueError, match="post-norm"):
        post = Transformer(VARIANTS["post-norm"])
        patch_map(post, pair_of(post, IDS, OTHER), "head", direct=True)
    with pytest.raises(ValueError, match="Choose zero"):
        patch_map(model, pair_of(model, IDS, OTHER), "head", Donor.MEAN)
    with pytest.raises(ValueError, match="no expert 0"):
        every_other = Transformer(VARIANTS["experts, swiglu, shared, every other layer"])
        patch_from(every_other, run(every_other, [OTHER]), 0, "expert", 1, 0)
    with pytest.raises(ValueError, match="not in the map"):
        patch_from(model, run(model, [OTHER]), 0, "head", 6, 0)
    model = roughened(TINY)
    found = patch_map(model, pair_of(model, [3], [5]), "residual")
    assert found.effects.shape == (2, 1) and np.allclose(found.shares, 1, atol=1e-4)


@pytest.mark.parametrize("name", CAUSAL)
def test_patches_and_steering_hold_while_the_model_writes(name):
    model = roughened(CAUSAL[name])
    part = "expert" if model.config.n_experts else "head"
    edits = [patch_from(model, run(model, [OTHER]), 1, part, 2, 1), Steer(1, torch.arange(16.0) / 16, 0.5)]
    ids = list(IDS[:4])
    for step in generate(model, ids, 5, tap=edits_tap(edits, model.config)):
        assert torch.allclose(step.logits, logits(model, ids, edits)[:, -1], atol=1e-4)
        ids.append(step.tokens[0])
    rules = SamplingConfig(temperature=1.0, seed=1)
    cached, plain = (
        [s.tokens for s in generate(model, IDS, 25, rules, use_cache=use, tap=edits_tap(edits, model.config))]
        for use in (True, False)
    )
    assert cached == plain


def test_a_direction_leads_from_one_mean_to_the_other_and_at_strength_0_changes_nothing():
    model, direction = Transformer(TINY, seed=2), torch.ones(16)
    plain = list(generate(model, IDS, 6))
    steered = list(generate(model, IDS, 6, tap=steering_tap(model, direction, 1, 0.0)))
    assert all(torch.equal(a.logits, b.logits) for a, b in zip(plain, steered, strict=True))
    windows = torch.tensor([IDS, OTHER]), torch.tensor([OTHER, IDS])
    curve = steering_curve(model, direction, 1, (-2.0, 0.0, 2.0), IDS, (2, 7), windows)
    own = logits(model, IDS)[0, -1]
    assert curve.effects[1] == pytest.approx(float(own[2] - own[7])) and len(set(curve.losses)) == 3
    model = roughened(TINY)
    towards, away = [IDS, IDS[:4], [2]], [OTHER]
    ends = [run(model, [ids])["resid_pre", 1][0, -1] for ids in (*towards, *away)]
    direction, between = difference_of_means(model, towards, away, 1), torch.stack(ends[:3]).mean(0) - ends[3]
    lengths = torch.cat([run(model, [ids])["resid_pre", 1][0] for ids in (*towards, *away)]).norm(dim=-1)
    assert torch.allclose(direction, between * lengths.median() / between.norm(), atol=1e-5)
    one, apart = difference_of_means(model, [IDS], [OTHER], 1), ends[0] - ends[3]
    assert torch.allclose(ends[3] + one * apart.norm() / one.norm(), ends[0], atol=1e-5)
    for sides in (([], away), (towards, []), (away, away)):
        with pytest.raises(ValueError):
            difference_of_means(model, *sides, 1)


@cache
def shipped(name):
    checkpoint = load(CHECKPOINTS / name)
    corpus = unseen(None, checkpoint).corpus
    return checkpoint, corpus.windows("val", checkpoint.config.context_length, 64)[0]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_shipped_model_is_clear_on_each_pair_written_down_for_it(name):
    checkpoint, _ = shipped(name)
    offered = written_pairs(checkpoint.model, checkpoint.tokenizer)
    for here, there, answer, other in WRITTEN[name]:
        ids, foil = tuple(checkpoint.tokenizer.encode(here)), tuple(checkpoint.tokenizer.encode(there))
        (pair,) = [each for each in offered if (each.ids, each.other) == (ids, foil)]
        assert [checkpoint.tokenizer.token_text(token) for token in (pair.answer, pair.foil)] == [answer, other]
        chances = checkpoint.model(torch.tensor([ids, foil])).logits[:, -1].softmax(-1)
        assert min(chances[0, pair.answer], chances[1, pair.foil]) >= 0.4
        assert pair_of(checkpoint.model, ids, foil) == pair and checkpoint.tokenizer.decode(ids) == here


def test_every_shipped_model_has_pairs():
    assert {path.name for path in CHECKPOINTS.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(WRITTEN)


def test_the_circuit_of_the_shipped_induction_model_is_a_previous_token_head_and_an_induction_head():
    checkpoint, windows = shipped("induction")
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    pair = written_pairs(model, tokenizer)[0]
    first, *more = fresh_pairs(model, tokenizer, pair, windows)
    found = find_circuit(model, [pair, first], more)
    scores = head_scores(look(checkpoint, windows[0].tolist()))
    heads = {node: scores.of(node.layer, node.head) for node in found.nodes if node.head is not None}
    (first, previous), (second, induction) = heads.items()
    assert (first.layer, second.layer) == (0, 1) and len(found.nodes) < len(nodes_of(model.config))
    assert previous["previous"] == scores.previous.max() and induction["induction"] == scores.induction.max()
    assert found.kept >= 0.9 and found.holds and len(found.fresh) == len(more) > 1
    assert second in found.most_needed and list(found.most_needed) == sorted(found.lost, key=found.lost.get)[:-3:-1]
    assert first in found.feeding([second])
    patched = patch_map(model, pair, "mlp").shares[1, -1]  # in the last layer, only the last token counts
    assert found.lost[Node(1)] == pytest.approx(patched, abs=1e-4), "the measure of a patch"


@pytest.mark.parametrize("name", ["rotary", "experts", "post-norm"])
def test_shares_of_circuits_are_those_of_passes_one_by_one(name):
    model = roughened(VARIANTS[name])
    pairs = [Pair((3, 1, 4, 1), (3, 8, 4, 1), 2, 7), Pair((5, 9, 2, 6), (5, 9, 2, 7), 1, 4)]
    runs, nodes = Runs(model, pairs), nodes_of(model.config)
    circuits = torch.rand(3, len(nodes), generator=torch.Generator().manual_seed(0)) < 0.5
    circuits = torch.cat((circuits, torch.ones(1, len(nodes), dtype=torch.bool)))

    def difference(pair, kept):
        def tap(at_name, layer, x):
            if at_name == "z":
                for head in range(TINY.n_heads):
                    if Node(layer, head) not in kept:
                        x = x.clone()
                        x[:, :, head] = there["z", layer][:, :, head]
            return there["ff_out", layer] if at_name == "ff_out" and Node(layer) not in kept else x

        there = trace(model, torch.tensor([pair.other]))
        with torch.no_grad():
            return float(pair.difference(model(torch.tensor([pair.ids]), Pass(tap=tap)).logits[0, -1]))

    def whole(prompt):
        logits = [trace(model, torch.tensor([getattr(pair, prompt)]))["logits", None] for pair in pairs]
        return torch.stack([pair.difference(each[0, -1]) for pair, each in zip(pairs, logits)])

    clean, corrupt = whole("ids"), whole("other")
    for circuit, share in zip(circuits, runs.shares(circuits)):
        kept = {node for node, inside in zip(nodes, circuit) if inside}
        gained = torch.tensor([difference(pair, kept) for pair in pairs]) - corrupt
        assert share.item() == pytest.approx((gained.sum() / (clean - corrupt).sum()).item(), abs=1e-3)
        assert runs.each_share(circuit) == pytest.approx((gained / (clean - corrupt)).tolist(), abs=1e-3)
    assert runs.shares(circuits)[-1].item() == pytest.approx(1.0, abs=1e-4)


def test_edges_straight_to_the_logits_and_shares_lost_are_measured_and_words_are_found():
    checkpoint, _ = shipped("sentences")
    pair = written_pairs(checkpoint.model, checkpoint.tokenizer)[0]
    found = find_circuit(checkpoint.model, [pair])
    assert {edge.sender for edge in found.edges if edge.receiver is None} == set(found.nodes) and found.fresh == ()
    nodes = nodes_of(checkpoint.model.config)
    one_out = torch.tensor([[each in found.lost and each != node for each in nodes] for node in found.lost])
    assert Runs(checkpoint.model, [pair]).shares(one_out).max() < 0.9 <= found.kept, "no part of it can go"
    with pytest.raises(ValueError):
        find_circuit(checkpoint.model, [])
    letters, words = CharTokenizer("abc ."), WordTokenizer(["ab", "c", "."])
    assert words_of(letters, letters.encode("ab c. ba")) == [(0, 2), (3, 4), (6, 8)]
    assert words_of(words, words.encode("ab c. ab")) == [(0, 1), (1, 2), (3, 4)]


def test_a_pair_of_own_text_stands_in_it_differs_in_one_token_and_the_model_is_sure_of_both_answers():
    """On the processor in fp32."""
    checkpoint = load(CHECKPOINTS / "sentences")
    model, tokenizer = checkpoint.model.float(), checkpoint.tokenizer
    ids = torch.tensor([tokenizer.encode("\n".join(SENTENCES))])
    pairs = found_pairs(model, tokenizer, ids)
    assert pairs
    text = tuple(ids[0].tolist())
    for pair in pairs:
        assert len(pair.changed) == 1 and pair.answer != pair.foil
        for prompt, answer in ((pair.ids, pair.answer), (pair.other, pair.foil)):
            assert any(text[i : i + len(prompt)] == prompt for i in range(len(text)))
            assert model(torch.tensor([prompt])).logits[0, -1].softmax(-1)[answer] >= 0.4
    assert found_pairs(model, tokenizer, ids[:, :5]) == [], "no two prompts are alike"
