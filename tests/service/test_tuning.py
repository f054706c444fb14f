"""A model that is trained further on the page: its tokens, what is measured, what is kept, and what is refused."""

import random

import pytest
import torch

from playground.service import job as job_module
from playground.service import runs
from playground.service.board import Board
from playground.service.cards import run_letters
from playground.service.job import Job
from playground.service.limits import LimitError
from playground.service.runs import RunSpec, Source
from playground.service.sweeps import SweepJob
from playground.service.views import RunView
from playground.service.why import corpus_of
from playground.studies.finetune import Measured, tuning_config
from playground.studies.sweep import Sweep
from tests.ui.runs import ANNA, BERT, ended, house, small_spec, until

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
    job = Job("id", ANNA, "a job", tmp_path)
    monkeypatch.setattr(job_module.time, "monotonic", lambda: 114.0)
    job.began, job.rested = 100.0, 4.0
    assert job.worked == 10.0 and job.rest_of(0.25) == 30.0 and job.rest_of(0.0) is None
