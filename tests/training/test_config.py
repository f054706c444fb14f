"""Schedules rise and fall as they say; snapshots spread; nonsense is refused in words."""

from itertools import pairwise

import pytest

from playground.training import TrainConfig
from playground.training.recipes import for_own_text


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_rates_rise_to_one_and_fall_to_the_final_fraction(schedule):
    config = TrainConfig(steps=100, warmup_steps=10, schedule=schedule, final_fraction=0.1)
    rates = [config.rate_at(step) for step in range(1, 101)]
    assert rates[0] == pytest.approx(0.1) and rates[9] == pytest.approx(1.0)
    assert all(a <= b for a, b in pairwise(rates[:10]))
    assert all(a >= b for a, b in pairwise(rates[10:]))
    end = 1.0 if schedule == "constant" else 0.1
    assert config.rate_at(101) == pytest.approx(end) and rates[-1] == pytest.approx(end, abs=0.011)


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
@pytest.mark.parametrize(("steps", "warmup"), [(1, 0), (1, 20), (10, 20), (10, 10), (10, 9), (3, 1), (600, 20)])
def test_every_step_learns_and_the_peak_is_reached_in_every_run(schedule, steps, warmup):
    config = TrainConfig(steps=steps, warmup_steps=warmup, schedule=schedule, final_fraction=0.0)
    rates = [config.rate_at(step) for step in range(1, steps + 1)]
    assert min(rates) > 0
    assert max(rates) == 1.0 or (warmup == 0 and max(rates) == rates[0] >= 0.5)


def test_snapshots_begin_dense_and_own_texts_get_the_size_that_was_measured_to_be_best():
    steps = TrainConfig(steps=1000, snapshots=40).snapshot_steps()
    assert steps[0] == 0 and steps[-1] == 1000 and 35 <= len(steps) <= 40
    gaps = [b - a for a, b in pairwise(steps)]
    assert gaps == sorted(gaps)
    assert TrainConfig(snapshots=0).snapshot_steps() == []
    chosen = {(tokens, vocabulary): for_own_text(tokens, vocabulary).size
              for tokens in (7_000, 28_000, 60_000, 128_000, 900_000) for vocabulary in (60, 512, 6000)}  # fmt: skip
    tiny = {key for key, size in chosen.items() if size == "tiny"}
    assert tiny == {(7_000, 60), (28_000, 60), (28_000, 512), (60_000, 512), (128_000, 512)}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": -1}, "number.*0"),
        ({"steps": 10.5}, "steps.*number"),
        ({"learning_rate": -1}, "learning_rate.*0.*10"),
        ({"optimizer": "sgd"}, "choose.*adamw"),
        ({"precision": "int8"}, "fp32.*bf16.*fp16"),
        ({"lerning_rate": 1}, "setting.*'lerning_rate'"),
        ({"compile": 1}, "compile.*1"),
        ({"max_seconds": float("inf")}, "max_seconds.*number"),
        ({"device": 3}, "device.*3"),
        ({"sample_prompt": None}, "sample_prompt.*text"),
        ({"seed": 2**64}, "number.*0"),
        ({"weight_decay": 10**400}, "weight_decay.*0.*10"),
        ({"snapshots": 10**9}, "0.*10000"),
    ],
)
def test_nonsense_is_refused_in_words(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        TrainConfig().replace(**changes)
