"""Comparisons live in the server like runs: found again, stopped together or one by one, both kept, nobody else's."""

import dataclasses
import math

import pytest

from playground.model import ModelConfig
from playground.service.comparisons import ComparisonJob, ComparisonSpec
from playground.service.limits import LimitError
from playground.service.runs import Source
from playground.training import TrainConfig
from tests.ui.runs import ANNA, BERT, TEXT, ended, house, small_spec, until

DENSE = ModelConfig(vocab_size=32, context_length=16, n_layers=1, d_model=16, n_heads=2)
MOE = DENSE.replace(n_experts=4, d_expert=16)
TRAINING = TrainConfig(steps=12, batch_size=4, eval_every=4, eval_windows=8, warmup_steps=2, seed=5)


def spec(**changes) -> ComparisonSpec:
    plain = ComparisonSpec(Source("text", text=TEXT), DENSE, MOE, TRAINING, seeds=2, tokenizer="char")
    return dataclasses.replace(plain, **changes)


def test_a_comparison_ends_with_a_verdict_and_both_models_which_are_its_visitors_own(tmp_path):
    jobs = house(tmp_path)
    job = ended(jobs.compare(ANNA, spec()))
    view = job.view()
    assert view.state == "finished" and "trained" in view.message
    assert view.verdict.seeds == 2 and view.withheld == "" and view.share_done == 1.0
    assert view.baselines.uniform > view.baselines.bigram
    for side, experts in (("dense", 0), ("moe", 4)):
        part = view.sides[side]
        checkpoint = jobs.registry.get(part.model_id, ANNA)
        assert checkpoint.config.n_experts == experts and checkpoint.history.last_step == 12
        assert checkpoint.about["ladder"] == view.baselines.to_dict()
        assert checkpoint.snapshots.steps[-1] == 12  # for pictures over training
        assert [h.last_step for h in part.histories] == [12, 12]
    assert [entry.has_experts for entry in jobs.registry.models(ANNA)] == [True, False]
    mean = sum(m - d for d, m in zip(view.sides["dense"].val_losses, view.sides["moe"].val_losses)) / 2
    assert math.isclose(mean, view.verdict.difference, abs_tol=1e-5)
    assert jobs.find(ANNA, job.id, kind=ComparisonJob) is job and jobs.find(BERT, job.id, kind=ComparisonJob) is None
    assert not jobs.registry.has(view.sides["moe"].model_id, BERT) and jobs.of(BERT, kind=ComparisonJob) == []
    assert jobs.of(ANNA) == [] and jobs.find(ANNA, job.id) is None  # the Train tab does not meet it


def test_one_thing_at_a_time_within_the_limits_and_stop_keeps_both(tmp_path):
    jobs = house(tmp_path)
    long = spec(training=TRAINING.replace(steps=100_000), seeds=1, moe=MOE.replace(balance="none"))
    job = jobs.compare(ANNA, long)
    assert job.name.endswith(", no balance")
    with pytest.raises(LimitError, match="already have"):
        jobs.start(ANNA, small_spec())
    assert jobs.stop(ANNA) is None  # Train's Stop is not this one's
    assert jobs.stop(ANNA, kind=ComparisonJob) is job
    ended(job)
    with pytest.raises(LimitError, match="seeds"):
        jobs.compare(ANNA, spec(seeds=99))
    with pytest.raises(LimitError, match="parameters"):
        jobs.compare(ANNA, spec(moe=MOE.replace(n_experts=30_000, d_expert=128), equal="active"))
    with pytest.raises(ValueError, match="no MoE"):
        narrow = {"dense": DENSE.replace(d_ff=8), "moe": MOE.replace(n_experts=32)}
        jobs.compare(ANNA, spec(**narrow, adapts="moe", equal="total"))
    job = jobs.compare(ANNA, spec(training=TRAINING.replace(steps=100_000)))
    until(
        lambda: (
            len(sides := job.view().sides) == 2
            and all(s.histories and s.histories[0].last_step > 4 for s in sides.values())
        )
    )
    jobs.stop(ANNA, kind=ComparisonJob)
    ended(job)
    view = job.view()
    assert view.state == "finished" and view.verdict is None
    assert "not judged" in view.withheld
    assert all(jobs.registry.has(part.model_id, ANNA) for part in view.sides.values())
