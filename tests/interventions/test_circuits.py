"""Pairs and circuits of the shipped models: found without hints, checked against passes one by one."""

from functools import cache

import pytest
import torch

from playground.data.sentences import SENTENCES
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.inspection import look
from playground.inspection.heads import head_scores
from playground.interventions.circuit import Node, Runs, find_circuit, nodes_of
from playground.interventions.pairs import WRITTEN, found_pairs, fresh_pairs, words_of, written_pairs
from playground.interventions.patching import Pair, pair_of, patch_map
from playground.model import Pass, trace
from playground.service.texts import unseen
from playground.storage import load
from playground.studies.slips import CHECKPOINTS
from tests.inspection.test_edits import roughened
from tests.model.configs import TINY, VARIANTS


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
