"""Nulls: a result is clear only if it beats every null, and routers that learned nothing seldom do."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.chance import LOOK_AT_TOKENS, rates
from playground.data import LANGUAGES
from playground.inspection import nulls
from playground.inspection.expert_information import MEASURES, expert_information
from playground.inspection.nulls import DRAWS, judge
from playground.inspection.probe import PROBE_SEED, probe
from playground.inspection.routing import first_choices
from playground.model import trace
from playground.storage import load
from playground.training.verdict import student_t

SHIPPED = Path(__file__).parents[2] / "checkpoints" / "dialects-moe"
DIALECTS = LANGUAGES["dialects"]


def draws(mean: float, spread: float, n: int = DRAWS) -> np.ndarray:
    """Draws of exactly this mean and standard deviation."""
    values = np.random.default_rng(0).standard_normal(n)
    return mean + spread * (values - values.mean()) / values.std(ddof=1)


@pytest.mark.parametrize("before", [np.array([0.50]), np.array([0.48]), draws(0.50, 0.002, 8), draws(0.48, 0.002, 8)])
def test_a_result_that_random_routers_reach_is_unclear_whatever_the_other_null_tells(before):
    """The null with the highest mean is not always the one that is hardest to beat."""
    random = draws(0.49, 0.05)
    assert (random >= 0.53).sum() == 6, "6 of 30 random routers tell as much"
    judgement = judge(0.53, {"before": before, "random": random})
    assert not judgement.is_clear
    assert judgement.hardest == ("random" if len(before) > 1 else "before"), "a single draw shows no spread"


def test_a_result_has_to_beat_every_null_by_more_than_one_more_draw_would():
    found = {"before": draws(0.30, 0.02, 8), "random": draws(0.20, 0.04), "shuffled": draws(0.2, 0.01) ** 3}
    bars = {}
    for name, drawn in found.items():
        n, power = len(drawn), 3 if name == "shuffled" else 1  # cube roots are close to normal where the bits are luck
        roots = drawn ** (1 / power)
        bars[name] = (roots.mean() + student_t(n - 1) * roots.std(ddof=1) * math.sqrt(1 + 1 / n)) ** power
    assert bars["random"] < bars["before"]
    judgement = judge(bars["random"] + 1e-6, found)
    assert not judgement.is_clear, "it beats random routers, but not untrained models"
    assert judgement.hardest == "before" and judgement.margin == pytest.approx(bars["before"] - 0.30)
    assert judgement.above == pytest.approx(bars["random"] - 0.30, abs=1e-5)
    top = bars["before"]
    assert judge(top + 1e-6, found).is_clear and not judge(top - 1e-6, found).is_clear
    assert not judge(top + 1e-6, found, tests=12).is_clear, "of twelve judgements each has to be surer"
    lucky = judge(0.02, {"shuffled": found["shuffled"]})
    assert lucky.margin == pytest.approx(bars["shuffled"] - found["shuffled"].mean())
    assert not judge(2.0, {**found, "shuffled": np.zeros(0)}).is_clear, "a text of one sentence tells nothing"


def test_shifts_turn_sources_as_on_a_ring_and_routers_that_know_nothing_seldom_beat_them():
    text = probe(DIALECTS, lambda line: [0] * len(line.split()), 32, 24)
    sources, sentences = text.sources.ravel(), text.sentences.ravel()
    labels = [int(sources[sentences == number][0]) for number in range(sentences[-1] + 1)]
    turned = {tuple(labels[(n + by) % len(labels)] for n in sentences): by for by in range(len(labels))}
    by = [turned[tuple(one.tolist())] for one in nulls.shifted_sources(text)]
    assert len(set(by)) == DRAWS and all(len(labels) // 20 <= n <= len(labels) - len(labels) // 20 for n in by)
    # Of every persistence, in every measure, one layer and any of four; `benchmarks chance` tries many more.
    texts, each = 8, 8
    table = rates("word", texts, each, tokens=2048)
    for title in ("total", "beyond", "remembered"):
        shares = [by[title] for name, by in table.items() if name not in LOOK_AT_TOKENS or title != "total"]
        assert np.mean(shares) < 0.07 and max(shares) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / (texts * each)), title
        together = [by[f"{title}, any of 4"] for name, by in table.items() if name not in LOOK_AT_TOKENS]
        assert np.mean(together) < 0.1, title


@pytest.fixture(scope="module")
def trained():
    """The shipped mixture and two probes of it."""
    checkpoint = load(SHIPPED)
    encode, T = checkpoint.tokenizer.encode, checkpoint.config.context_length
    return checkpoint, probe(DIALECTS, encode, T, 48), probe(DIALECTS, encode, T, 96, seed=PROBE_SEED + 7)


def test_random_routers_are_unclear_nineteen_times_in_twenty(trained):
    """Sixty of them, in four layers and three measures at once, against thirty others on the same stream."""
    checkpoint, text, _ = trained
    usual, *others = (
        [expert_information(layer, 8, text) for layer in nulls.random_routers(checkpoint.model, text.ids, seed)]
        for seed in range(3)
    )
    clear = [
        any(
            judge(layer[name][r], {"random": null[name]}, 4 * len(MEASURES)).is_clear
            for layer, null in zip(routers, usual)
            for name in MEASURES
        )
        for routers in others
        for r in range(DRAWS)
    ]
    assert sum(clear) <= 0.1 * len(clear)


def test_a_router_that_was_taught_who_speaks_is_found_out(trained):
    """Its rows are fitted, on another text, to tell from the stream who speaks beyond the token, and their opposite."""
    checkpoint, text, other = trained
    layer, ids = 2, other.ids.flatten()

    def beyond_the_token(x: torch.Tensor) -> torch.Tensor:
        means = torch.zeros(int(ids.max()) + 1, x.shape[1]).index_add_(0, ids, x) / ids.bincount().clamp(min=1)[:, None]
        return x - means[ids]

    x = beyond_the_token(trace(checkpoint.model, other.ids, names=["ff_in"])["ff_in", layer].flatten(0, 1))
    speakers = beyond_the_token(torch.eye(4)[torch.from_numpy(other.sources.ravel())])
    fitted = torch.linalg.solve(x.T @ x + 0.1 * len(x) * torch.eye(64), x.T @ speakers).T
    model = copy.deepcopy(checkpoint.model)
    model.blocks[layer].feedforward.router.weight.data = torch.cat((fitted, -fitted))
    random = nulls.random_routers(model, text.ids, 1)
    taught = nulls.judge_against_nulls(model, text, first_choices(model, text.ids), random, 1)
    assert all(taught[layer][name].is_clear and taught[layer][name].above > 0.2 for name in ("total", "beyond"))
    assert not any(judgement.is_clear for judgement in taught[0].values()), "the layers before it are as they were"
