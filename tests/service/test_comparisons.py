"""Comparisons, sweeps and models trained further live in the server like runs: found again, stopped, kept, refused."""

import dataclasses
import math
import random

import pytest
import torch

from playground.model import ModelConfig
from playground.service import job as job_module
from playground.service import runs
from playground.service.board import Board
from playground.service.cards import run_letters
from playground.service.comparisons import ComparisonJob, ComparisonSpec
from playground.service.job import Job
from playground.service.limits import LimitError
from playground.service.runs import RunSpec, Source
from playground.service.sweeps import SweepJob
from playground.service.views import RunView
from playground.service.why import corpus_of
from playground.studies.finetune import Measured, tuning_config
from playground.studies.sweep import Sweep
from playground.training import Stepped, TrainConfig
from playground.training.comparison import SideEvent
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
        checkpoint = jobs.registry.get(job.model_ids[side], ANNA)
        assert checkpoint.config.n_experts == experts and checkpoint.history.last_step == 12
        assert checkpoint.about["ladder"] == view.baselines.to_dict()
        assert checkpoint.snapshots.steps[-1] == 12  # for pictures over training
        assert [h.last_step for h in part.histories] == [12, 12]
    assert [entry.has_experts for entry in jobs.registry.models(ANNA)] == [True, False]
    mean = sum(m - d for d, m in zip(view.sides["dense"].val_losses, view.sides["moe"].val_losses)) / 2
    assert math.isclose(mean, view.verdict.difference, abs_tol=1e-5)
    assert jobs.find(ANNA, job.id, kind=ComparisonJob) is job and jobs.find(BERT, job.id, kind=ComparisonJob) is None
    assert not jobs.registry.has(job.model_ids["moe"], BERT) and jobs.of(BERT, kind=ComparisonJob) == []
    assert jobs.of(ANNA) == [] and jobs.find(ANNA, job.id) is None  # the Train tab does not meet it


def test_one_thing_at_a_time_within_the_limits_and_stop_keeps_both(tmp_path):
    jobs = house(tmp_path)
    long = spec(training=TRAINING.replace(steps=100_000), seeds=1, moe=MOE.replace(balance="none"))
    job = jobs.compare(ANNA, long)
    with pytest.raises(LimitError, match="already have"):
        jobs.start(ANNA, small_spec())
    assert jobs.stop(ANNA) is None  # Train's Stop is not this one's
    assert jobs.stop(ANNA, kind=ComparisonJob) is job
    ended(job)
    assert all(each.name.endswith(", no balance") for each in (job, *jobs.registry.models(ANNA)))
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
    assert job.learned == list(job.model_ids.values())


OTHER = "a dog and a cat sat on a mat, and that mat sat on the cat. " * 40


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A board, and a run of thirty steps on it whose model can be trained further."""
    board = house(tmp_path_factory.mktemp("tuning"))
    view = ended(board.start(ANNA, small_spec())).view()
    return board, view.id, {name: w.clone() for name, w in board.registry.get(view.id, ANNA).model.state_dict().items()}


def tune(board, model, text=OTHER, source="text", *, visitor=ANNA, steps=6, **more):
    of = board.registry.get(model, visitor)
    changes = {"eval_every": 3, "eval_windows": 4, "sample_every": 0, "sample_prompt": "the ", "device": "cpu", **more}
    training = tuning_config(of.config).replace(steps=steps, **changes)
    return board.start(
        visitor, RunSpec(Source(source, text=text), of.config, training, of.tokenizer.kind, parent=model)
    )


def test_a_tuned_run_says_what_it_learned_and_forgot_and_its_parent_stays(learned, monkeypatch):
    board, parent, weights = learned
    job = tune(board, parent)
    view = ended(job).view()
    assert view.message == "All 6 steps are done." and view.done == 0.6, "the bar moved while both were measured"
    assert view.tuning["before"]["old"] is not None
    before, after = (sum(view.tuning[when]["new"]["total"]) for when in ("before", "after"))
    assert after < before and len(view.tuning["before"]["samples"]) == len(view.tuning["after"]["samples"]) > 1
    made, of = board.registry.get(view.id, ANNA), board.registry.get(parent, ANNA)
    assert made.tokenizer.to_dict() == of.tokenizer.to_dict() and made.about["parent"]["name"] == of.name
    assert all(torch.equal(weights[name], now) for name, now in of.model.state_dict().items())
    assert RunView.of_checkpoint(view.id, made).tuning == view.tuning
    assert RunView.of_checkpoint(view.id, made.at(made.snapshots.steps[0])).tuning is None, "it is of the last step"
    assert run_letters(view, job.spec) == ""  # a link could not repeat it
    with pytest.raises(ValueError, match="trained further"):  # a proof would train it anew, without its parent
        corpus_of(board, made)
    row = {"state": "over", "id": job.id, "visitor": job.visitor, "name": job.name}
    again = type(job).found(row, job.noted(), board.limits, board.registry)
    assert again.spec == job.spec and again.view().tuning == view.tuning
    done = []
    monkeypatch.setattr(board, "told", lambda job: done.append(job.view().done))
    going = board.resume(ANNA, job.id, more_steps=3)
    assert not ((seen := going.view()).active and seen.tuning), "what fewer steps had changed"
    longer = ended(going).view()
    assert done[0] == 0, "the bar is the steps' again"
    assert longer.history.last_step == 9 and longer.tuning["before"] == view.tuning["before"] != longer.tuning["after"]


def test_what_training_changed_is_that_of_the_step_in_use_and_its_loss_is_the_curves(learned):
    board, parent, _ = learned
    letters = "".join(random.Random(0).choices("a cat sat on the dog. ", k=1500))
    job = ended(tune(board, parent, letters, steps=60, learning_rate=0.02))
    last = job.view()
    board.use_best(ANNA, job.id)
    best = job.view()
    assert best.used == last.kept < 60 and best.tuning == last.tuning | {"after": last.tuning["best"]}
    assert RunView.of_checkpoint(best.id, board.registry.get(best.id, ANNA)).tuning == best.tuning
    for view in (last, best):
        losses = [Measured.from_dict(view.tuning[when]).new.loss for when in ("before", "after")]
        curve = view.of_model.evaluations["val_loss"]
        assert losses == pytest.approx([curve[0], curve[-1]], abs=1e-5)
    board.use_best(ANNA, job.id, best=False)
    assert job.view().tuning == last.tuning == board.registry.get(job.id, ANNA).about["tuning"]


def test_what_cannot_be_tuned_is_said(learned, monkeypatch):
    board, parent, _ = learned
    sentences = ended(tune(board, parent, "", "sentences")).view().message
    assert "characters lack" in sentences, "its words were once taken for the model's characters"
    assert "the text has only 9 tokens" in ended(tune(board, parent, "the cat s")).view().message
    with pytest.raises(ValueError, match="no longer here"):
        tune(board, parent, visitor=BERT)
    monkeypatch.setattr(runs, "free_memory", lambda device: 1000)
    assert "GB for it" in ended(tune(board, parent)).view().message


def test_a_sweep_ends_or_is_stopped_with_its_table_and_is_found_again(tmp_path):
    board = house(tmp_path)
    job = board.sweep(ANNA, small_spec(steps=3), Sweep("n_layers", (1, 2), 2))
    view = ended(job).view()
    assert view.state == "finished" and view.done == 1 and not board.registry.models(ANNA)
    assert [row.value for row in view.rows] == [1, 2] and all(len(row.losses) == 2 for row in view.rows)
    until(lambda: board.data.rows("SELECT 1 FROM jobs WHERE id = ? AND state = 'over'", job.id))
    again = Board(board.registry, board.limits).of(ANNA, kind=SweepJob)
    assert [found.view().rows for found in again] == [view.rows] and again[0].settled
    ended(board.sweep(ANNA, small_spec(steps=3), Sweep("n_layers", (1, 2), 1)))
    assert len(board.of(ANNA, kind=SweepJob)) == 1  # in place of the last one
    job = board.sweep(ANNA, small_spec(steps=60), Sweep("learning_rate", (0.001, 0.01), 3))
    until(lambda: job.has_result)
    board.stop(ANNA, kind=SweepJob)
    view = ended(job).view()
    assert view.state == "finished" and sum(len(row.losses) for row in view.rows) < 6


def test_a_value_beyond_a_limit_is_refused_and_the_time_left_is_that_of_the_steps_left(tmp_path, monkeypatch):
    board = house(tmp_path)
    with pytest.raises(LimitError, match="layers are too many"):
        board.sweep(ANNA, small_spec(), Sweep("n_layers", (1, 1000), 1))
    view = ended(board.sweep(ANNA, small_spec(), Sweep("context_length", (16, 1000), 1))).view()
    assert view.state == "failed" and "too few for a context of 1000" in view.message
    job = Job("id", ANNA, "a job", board.limits, board.registry)
    seen = []
    for now, done in ((114.0, 0.01), (124.0, 0.2), (134.0, 0.4)):
        monkeypatch.setattr(job_module.time, "monotonic", lambda now=now: now)
        job.began = 104.0
        seen.append((job.worked, job.rest_of(done)))
    assert seen == [(10.0, None), (20.0, None), (30.0, pytest.approx(30.0))], (
        "the first steps also get everything ready"
    )
    pair = ComparisonJob("id", ANNA, "a pair", spec(), board.limits, board.registry)
    for now, side, step in ((134.0, "dense", 1), (194.0, "moe", 1), (195.0, "dense", 2)):
        assert pair.time_left is None
        monkeypatch.setattr(job_module.time, "monotonic", lambda now=now: now)
        pair._take(SideEvent(5, side, Stepped(step, now, 1.0, 0.1, 1.0, tokens_per_second=1.0, time_left=1.0)))
        pair.state = "training"
    assert pair.time_left == pytest.approx(2 * 2 * 12 - 3)
