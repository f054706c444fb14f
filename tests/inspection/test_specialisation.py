"""Specialisation: routers that see only the token tell nothing beyond it, those that follow the source all of it."""

import numpy as np
import pytest
import torch

from playground.data import LANGUAGES
from playground.data.tokenizers import CharTokenizer
from playground.inspection import specialisation as s
from playground.inspection.information import entropy
from playground.inspection.probe import probe
from playground.inspection.routing import routing_of
from playground.model import ModelConfig, Transformer

from .by_counting import information_by_counting

DIALECTS = LANGUAGES["dialects"]


@pytest.fixture(scope="module")
def probed():
    """A mixture that remembers nothing (no attention output, no experts' output), and a probe that it routed."""
    tokenizer = CharTokenizer.from_text("".join(DIALECTS.graph.texts))
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, context_length=160, n_layers=2, d_model=16, n_heads=2, n_experts=4,
        positions="rotary", init_std=0.5, zero_init_outputs=True,
    )  # fmt: skip
    return Transformer(config), probe(DIALECTS, tokenizer.encode, 160, 16)


def test_an_untrained_router_tells_what_the_token_tells_and_nothing_more(probed):
    model, probe = probed
    tokens, sources = probe.ids.flatten().tolist(), probe.sources.ravel().tolist()
    for layer in s.specialisation(routing_of(model, probe.ids), probe, shifts=19):
        assert layer.bits["beyond"] == layer.bits["remembered"] == pytest.approx(0.0, abs=1e-9)
        assert 0 < layer.bits["total"] < information_by_counting(list(zip(tokens, sources)))
        assert layer.by_chance["total"].p95 > 0


def test_experts_that_follow_the_source_are_found_out(probed):
    """A tap sends every token to its speaker's expert: all is told, at the openings, too."""
    model, probe = probed

    def edit(name, layer, x):
        return torch.tensor(probe.sources[..., None]).expand_as(x) if name == "experts" and layer == 1 else x

    _, told = s.specialisation(routing_of(model, probe.ids, edit=edit), probe, shifts=19)
    total = entropy(np.bincount(probe.sources.ravel()))
    assert told.layer == 1 and told.bits["total"] == pytest.approx(total)
    assert told.table.tolist() == np.diag(np.bincount(probe.sources.ravel(), minlength=4)).tolist()
    opens = probe.openings.ravel()
    at = list(zip(probe.ids.numpy().ravel()[opens].tolist(), probe.sources.ravel()[opens].tolist()))
    left = information_by_counting([(source, source) for _, source in at]) - information_by_counting(at)
    assert told.bits["remembered"] == pytest.approx(left)
    for measure, chance in told.by_chance.items():
        assert told.bits[measure] > 2 * chance.p95 > 0 and chance.p == 0.05, "not one of 19 shifts comes near"


def test_over_training_is_the_same_measure_snapshot_by_snapshot(probed):
    model, probe = probed
    rng = torch.Generator().manual_seed(0)
    changed = {n: t + torch.empty_like(t).normal_(0, 0.3, generator=rng) for n, t in model.state_dict().items()}
    snapshots = [(0, model.state_dict()), (5, {name: t.half() for name, t in changed.items()})]
    records = s.specialisation_over_training(model.config, snapshots, probe)
    assert [r["step"] for r in records] == [0, 5]
    other = Transformer(model.config)
    other.load_state_dict({name: t.half().float() for name, t in changed.items()})
    for record, each in zip(records, (model, other)):
        for i, layer in enumerate(s.specialisation(routing_of(each, probe.ids), probe, shifts=0)):
            assert {name: record[name][i] for name in s.MEASURES} == layer.bits and not layer.by_chance
    assert records[1]["beyond"][1] > 0.01
