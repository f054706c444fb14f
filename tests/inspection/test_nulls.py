"""Nulls: what a trained model's routers tell is held against routers that learned nothing, on the same stream."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from playground.data import LANGUAGES
from playground.inspection import nulls
from playground.inspection.information import counted, mutual_information
from playground.inspection.probe import PROBE_SEED, probe
from playground.inspection.routing import routing_of
from playground.inspection.specialisation import MEASURES, specialisation
from playground.model import Pass, Recorder, Transformer
from playground.storage import load
from playground.training.verdict import student_t

SHIPPED = Path(__file__).parents[2] / "checkpoints" / "dialects-moe"
DIALECTS = LANGUAGES["dialects"]


@pytest.fixture(scope="module")
def trained():
    """The shipped mixture and two probes of it."""
    checkpoint = load(SHIPPED)
    encode, T = checkpoint.tokenizer.encode, checkpoint.config.context_length
    return checkpoint, probe(DIALECTS, encode, T, 48), probe(DIALECTS, encode, T, 96, seed=PROBE_SEED + 7)


def with_routers(model: Transformer, weights: list[torch.Tensor]) -> Transformer:
    """The same model with other routers."""
    changed = Transformer(model.config)
    changed.load_state_dict(model.state_dict())
    for block, weight in zip(changed.blocks, weights):
        block.feedforward.router.weight.data = weight
    return changed


def held_against(model, text, seed=1):
    layers = specialisation(routing_of(model, text.ids), text, shifts=19)
    return nulls.against_nulls(model, text, layers, nulls.random_routes(model, text.ids, seed), seed)


def test_bits_are_those_of_the_whole_text_and_of_the_text_without_each_part(trained):
    checkpoint, text, _ = trained
    first = routing_of(checkpoint.model, text.ids).experts[1, ..., 0].numpy()
    found = nulls._bits(first.reshape(1, -1), 8, text)
    told = specialisation(routing_of(checkpoint.model, text.ids), text, shifts=0)[1].bits
    assert {name: bits[0, 0] for name, bits in found.items()} == pytest.approx(told)
    left_out = np.arange(48) * nulls.PARTS // 48 == 5
    rest = dataclasses.replace(
        text, ids=text.ids[~left_out], **{name: getattr(text, name)[~left_out] for name in ("sources", "openings")}
    )
    beyond = counted(first[~left_out].ravel(), rest.sources.ravel(), 8, 4, rest.ids.flatten().numpy())
    assert found["beyond"][1 + 5, 0] == pytest.approx(mutual_information(beyond))


def test_the_model_before_training_is_the_one_that_was_trained(trained):
    """As the run itself recorded it at its first step."""
    checkpoint, text, _ = trained
    before = nulls._bits(
        routing_of(Transformer(checkpoint.config, seed=1), text.ids).experts[:1, ..., 0].flatten(1).numpy(), 8, text
    )
    recorded = checkpoint.about["specialisation"][0]
    assert recorded["step"] == 0 and before["total"][0, 0] == pytest.approx(recorded["total"][0], abs=0.02)
    assert held_against(checkpoint.model, text)[0]["total"].nulls["before"].bits == pytest.approx(before["total"][0, 0])


def test_what_the_shipped_routers_tell_their_stream_tells_through_any_router(trained):
    """Luck is far below what they tell, and they are no better than random routers all the same."""
    checkpoint, text, _ = trained
    found = held_against(checkpoint.model, text)
    assert max(layer["remembered"].bits for layer in found) > 10 * found[1]["remembered"].nulls["shuffled"].bits
    assert not any(layer[name].is_clear for layer in found for name in MEASURES)
    assert {layer[name].strongest for layer in found for name in MEASURES} == {"random"}


def test_random_routers_are_unclear_nineteen_times_in_twenty(trained):
    checkpoint, text, _ = trained
    rng, clear, tries = torch.Generator().manual_seed(5), 0, 7
    for _ in range(tries):
        weights = [torch.randn(8, 64, generator=rng) for _ in range(4)]
        found = held_against(with_routers(checkpoint.model, weights), text)
        clear += sum(any(layer[name].is_clear for layer in found) for name in MEASURES)
    assert clear <= 0.1 * tries * len(MEASURES)


def test_a_router_that_was_taught_who_speaks_is_found_out(trained):
    """Its rows are fitted, on another text, to tell from the stream who speaks beyond the token, and their opposite."""
    checkpoint, text, other = trained
    layer, recorder = 2, Recorder(("ff_in",))
    with torch.no_grad():
        checkpoint.model(other.ids, Pass(tap=recorder))
    ids = other.ids.flatten()

    def beyond_the_token(x: torch.Tensor) -> torch.Tensor:
        means = torch.zeros(int(ids.max()) + 1, x.shape[1]).index_add_(0, ids, x) / ids.bincount().clamp(min=1)[:, None]
        return x - means[ids]

    x = beyond_the_token(recorder.trace["ff_in", layer].flatten(0, 1))
    speakers = beyond_the_token(torch.eye(4)[torch.from_numpy(other.sources.ravel())])
    fitted = torch.linalg.solve(x.T @ x + 0.1 * len(x) * torch.eye(64), x.T @ speakers).T
    weights = [block.feedforward.router.weight.data for block in checkpoint.model.blocks]
    weights[layer] = torch.cat((fitted, -fitted))
    taught = held_against(with_routers(checkpoint.model, weights), text)
    assert all(taught[layer][name].is_clear and taught[layer][name].left > 0.2 for name in ("total", "beyond"))
    assert not any(left.is_clear for left in taught[0].values()), "the layers before it are as they were"


def test_an_expert_that_prefers_a_speaker_stands_beside_what_random_routers_prefer(trained):
    """One random router's largest preference lies within the range that is given, thirty-nine times in forty."""
    checkpoint, text, _ = trained
    usual, most = nulls.untaught_lifts(nulls.random_routes(checkpoint.model, text.ids), 8, text)[2]
    assert 1 < usual < most
    drawn = nulls.random_routes(checkpoint.model, text.ids, 77)[2]
    lifts = [nulls._largest_lift(counted(route, text.sources.ravel(), 8, 4)) for route in drawn]
    assert np.mean(lifts) == pytest.approx(usual, abs=0.4) and np.mean(np.array(lifts) > most) <= 0.1
    by_hand = np.array([[30.0, 10.0], [0.0, 1.0], [10.0, 50.0]])
    assert nulls._largest_lift(by_hand) == pytest.approx(30 * 101 / (40 * 40)), "one token in a hundred does not count"


def test_the_margin_holds_what_text_and_draws_leave_open():
    """Of the same spread by text alone and by draws alone; where luck is strongest, its own spread."""
    rng, R, G = np.random.default_rng(0), nulls.DRAWS, nulls.PARTS
    bits = np.zeros((1 + G, 2 + 2 * R))
    bits[:, 0] = 0.5
    bits[:, 2 + R :] = 0.2 + 0.05 * rng.standard_normal(R)
    chance = type("Chance", (), {"mean": 0.01, "p95": 0.02})()
    factor = student_t(R - 1)
    found = nulls._left(bits, chance, factor)
    spread = bits[0, 2 + R :].std(ddof=1)
    assert found.strongest == "random" and found.is_clear
    assert found.margin == pytest.approx(factor * spread * math.sqrt(1 + 1 / R))
    bits[1:, 0] += 0.01 * np.where(np.arange(G) % 2, 1, -1)
    of_text = math.sqrt((G - 1) / G * G * 0.01**2)
    both = math.hypot(of_text, spread * math.sqrt(1 + 1 / R))
    assert nulls._left(bits, chance, factor).margin == pytest.approx(factor * both)
    bits[:, 1:] = 0.0
    assert nulls._left(bits, chance, factor).strongest == "shuffled"
