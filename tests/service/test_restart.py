"""After a restart everything is there, and what was interrupted ends with the digits of a run that was not.

A server is killed between two lines of Python by copying its data folder: nothing was closed, nothing flushed that was
not before.
"""

import dataclasses
import json
import os
import shutil
import sqlite3
import threading
import time
from pathlib import Path

import pytest
import torch

from playground.service import data_folder
from playground.service.board import MOST_TRIES, Board
from playground.service.comparisons import ComparisonJob, run_comparison
from playground.service.data_folder import DataFolder
from playground.service.job import Job
from playground.service.limits import CLASS
from playground.service.runs import run_training
from playground.service.store import FILE, StoreError
from playground.storage import checkpoint as checkpoint_module
from playground.training import Stepped
from playground.training.comparison import SideEvent
from tests.conftest import SIGNING_KEY
from tests.service.test_comparisons import TRAINING, spec
from tests.ui.runs import ANNA, BERT, ScriptedRunner, ended, small_spec, until
from tests.ui.runs import house as house_in


def house(path: Path, runner=run_training, **limits) -> Board:
    """A board on this data folder."""
    return house_in(path, runner, data=DataFolder(path), **limits)


def killed(board: Board, path: Path) -> Path:
    """A copy of the board's data folder, as a kill at this moment leaves it."""
    return Path(shutil.copytree(board.data.path, path, ignore=shutil.ignore_patterns(".lock", "*.partial")))


def over(board: Board, job) -> bool:
    """Whether a job is over, that is noted, and what it needed for its work is gone."""
    return (
        job.settled
        and not (job.folder / "runs").exists()
        and bool(board.data.rows("SELECT 1 FROM jobs WHERE id = ? AND state = 'over'", job.id))
    )


class Held:
    """A runner that stops reading a run's events at a step, after the state was saved a few steps before."""

    def __init__(self, step: int, runner=run_training, side: str | None = None):
        self.step, self.runner, self.side = step, runner, side
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self, *arguments, **named):
        for event in self.runner(*arguments, **named):
            yield event
            inner = event.event if isinstance(event, SideEvent) else event
            side = getattr(event, "side", None)
            if isinstance(inner, Stepped) and inner.step == self.step and side == self.side:
                self.reached.set()
                assert self.go_on.wait(60)


def steps_of(job) -> dict:
    """The losses of a run, without the seconds."""
    history = job.view().history
    losses = {name: column for name, column in history.steps.items() if name in ("step", "loss")}
    return losses | {name: column for name, column in history.evaluations.items() if name != "seconds"}


RUN = small_spec(steps=40, sample_every=10, autosave_seconds=0.01)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> tuple:
    """The losses and the weights of the run that nobody interrupted."""
    board = house(tmp_path_factory.mktemp("unbroken"))
    job = ended(board.start(ANNA, RUN))
    return steps_of(job), board.registry.get(job.id, ANNA).model.state_dict()


@pytest.mark.parametrize("step", [1, 25])
def test_a_killed_run_is_a_model_until_its_page_is_back_and_ends_with_the_same_digits(tmp_path, unbroken, step):
    held = Held(step)
    first = house(tmp_path / "first", held)
    job = first.start(ANNA, RUN)
    assert held.reached.wait(60)
    again = house(killed(first, tmp_path / "left"))
    held.go_on.set()
    time.sleep(0.1)
    saved = [again.registry.get(model.id, ANNA).history.last_step for model in again.registry.models(ANNA)]
    assert (saved or step == 1) and all(step - 5 <= last <= step for last in saved)
    assert again.counts()["working"] == 0 and again.counts()["waiting"] == 1
    (found,) = again.of(ANNA)
    assert found.id == job.id and found.name == job.name and found.spec == job.spec
    ended(found)
    assert found.state == "finished" and steps_of(found) == unbroken[0]
    weights = again.registry.get(found.id, ANNA).model.state_dict()
    assert all(torch.equal(tensor, unbroken[1][name]) for name, tensor in weights.items())
    assert again.of(BERT) == [] and not again.registry.has(found.id, BERT)
    ended(job)


def test_what_was_finished_is_there_again_whole(tmp_path):
    first = house(tmp_path / "first")
    job = first.start(ANNA, small_spec(steps=30, snapshots=4, device="cpu"))
    until(lambda: over(first, job))
    first.rename(ANNA, job.id, "My first")
    before, weights = job.view(), first.registry.get(job.id, ANNA).model.state_dict()
    again = house(killed(first, tmp_path / "left"))
    assert [entry.name for entry in again.registry.models(ANNA)] == ["My first"] and again.registry.here(job.id) is None
    (found,) = again.of(ANNA)
    found.predict()
    view = found.view()
    for name in ("id", "name", "state", "planned_steps", "config", "corpus_key", "prompt", "settings", "can_resume"):
        assert getattr(view, name) == getattr(before, name), name
    assert view.message == before.message and view.notices == before.notices
    assert view.history.samples == before.history.samples and view.history.judged == before.history.judged
    assert view.history.val_loss == pytest.approx(before.history.val_loss, rel=1e-5)
    assert torch.equal(view.now, before.now) and torch.equal(view.before, before.before)
    checkpoint = again.registry.get(job.id, ANNA)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in checkpoint.model.state_dict().items())
    assert checkpoint.snapshots.steps and again.source_of(checkpoint) == job.spec.source
    longer = ended(again.resume(ANNA, job.id, more_steps=10))
    assert longer.view().history.last_step == 40
    assert again.start(ANNA, small_spec()).name.startswith("Run 2")


def test_the_line_keeps_its_order_and_begins_when_the_pages_are_back(tmp_path):
    runner = ScriptedRunner()
    first = house(tmp_path / "first", runner, jobs=1)
    visitors = [f"{name}-{'x' * 30}" for name in ("anna", "bert", "carla", "dora")]
    jobs = [first.start(visitor, small_spec(steps=100_000)) for visitor in visitors]
    until(lambda: jobs[0].state == "training")
    until(lambda: len(first.data.rows("SELECT 1 FROM jobs WHERE state = 'working'")) == 1)
    again = house(killed(first, tmp_path / "left"), ScriptedRunner(), jobs=1)
    assert again.counts() == {"places": 1, "working": 0, "waiting": 4, "remembered": 4}
    assert [job.visitor for job in again._line.order(again._jobs.values())] == visitors
    (last,) = again.of(visitors[-1])
    until(lambda: last.state == "training")  # only her page is back
    (second,) = again.of(visitors[1])
    assert second.state == "waiting"
    for board in (first, again):
        for visitor in visitors:
            board.stop(visitor)


def test_a_run_that_gets_further_is_begun_again_however_often_the_server_is_killed(tmp_path, unbroken):
    """The third kill was the last that a run was begun again after, whatever it had done in between."""
    spec = dataclasses.replace(RUN, training=RUN.training.replace(autosave_seconds=0.0))
    held = Held(3)
    board = house(tmp_path / "0", held)
    board.start(ANNA, spec)
    for kill in range(1, MOST_TRIES + 3):
        assert held.reached.wait(60)
        copy = killed(board, tmp_path / str(kill))
        held.go_on.set()
        until(lambda board=board: all(job.settled for job in board.of(ANNA)))
        held = Held(3 + 5 * kill)
        board = house(copy, held)
        board.of(ANNA)  # the page is back
    held.go_on.set()
    (found,) = board.of(ANNA)
    ended(found)
    assert found.view().history.last_step == 40 and steps_of(found) == unbroken[0]


def test_what_ends_the_server_again_and_again_is_not_begun_again(tmp_path):
    held = Held(10)
    board = house(tmp_path / "0", held)
    job = board.start(ANNA, RUN)
    assert held.reached.wait(60)
    last = board
    for i in range(1, MOST_TRIES + 1):
        copy = killed(last, tmp_path / str(i))
        with sqlite3.connect(copy / FILE) as db:
            db.execute("UPDATE jobs SET state = 'working'")
        last = house(copy, ScriptedRunner())
    (found,) = last.of(ANNA)
    assert found.settled and "several times" in found.message
    held.go_on.set()
    ended(job)


def test_a_comparison_that_was_killed_ends_with_the_same_verdict(tmp_path, monkeypatch):
    asked = spec(seeds=2, training=TRAINING.replace(steps=16, autosave_seconds=0.01))
    whole = house(tmp_path / "whole")
    unbroken = ended(whole.compare(ANNA, asked), 120)
    held = Held(12, run_comparison, side="moe")
    monkeypatch.setattr(ComparisonJob, "runner", staticmethod(held))
    first = house(tmp_path / "first")
    job = first.compare(ANNA, asked)
    assert held.reached.wait(60)
    monkeypatch.undo()
    again = house(killed(first, tmp_path / "left"))
    held.go_on.set()
    (found,) = again.of(ANNA, kind=ComparisonJob)
    until(lambda: over(again, found), 120)
    expected, view = unbroken.view(), found.view()
    assert dataclasses.asdict(view.verdict) == dataclasses.asdict(expected.verdict) and view.message == expected.message
    for side in ("dense", "moe"):
        losses = [[h.steps["loss"] for h in v.sides[side].histories] for v in (view, expected)]
        assert losses[0] == losses[1]
    ended(job, 120)
    third = house(killed(again, tmp_path / "third"))
    (kept,) = third.of(ANNA, kind=ComparisonJob)
    assert kept.view().verdict == view.verdict and len(kept.learned) == 2 and kept.view().baselines == view.baselines
    assert all(third.registry.get(model_id, ANNA) for model_id in kept.learned)


def test_a_visitor_is_known_after_a_restart_and_two_servers_do_not_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(DataFolder, "_signing_key", SIGNING_KEY)
    first = DataFolder(tmp_path)
    visitor = first.new_visitor()
    first.keep_lessons(visitor, "{}")
    with pytest.raises(data_folder.BusyError):
        DataFolder(tmp_path)
    first.close()
    again = DataFolder(tmp_path)
    assert again.lessons(visitor) == "{}" and again.knows(visitor) and not DataFolder().knows(visitor)
    for invented in ("x" * 48, visitor[:-1] + "x", visitor[:24], "", None, 7, [visitor]):
        assert not again.knows(invented)


def test_delete_my_data_leaves_nothing_behind_nor_does_a_week_but_on_ones_own_machine(tmp_path):
    board = house(tmp_path / "data")
    jobs = [board.start(visitor, small_spec()) for visitor in (ANNA, BERT)]
    until(lambda: all(over(board, job) for job in jobs))
    board.data.keep_lessons(ANNA, json.dumps({"lesson": "first-model"}))
    board.forget_visitor(ANNA)
    assert board.of(ANNA) == [] and board.registry.models(ANNA) == [] and board.data.lessons(ANNA) == ""
    files = [path for path in board.data.path.rglob("*") if path.is_file()]
    assert not any(ANNA.encode() in path.read_bytes() or jobs[0].id in str(path) for path in files)
    again = house(killed(board, tmp_path / "left"))
    assert again.of(ANNA) == [] and len(again.of(BERT)) == 1
    for keep_days, left in ((CLASS.keep_days, 0), (None, 1)):
        board = house(tmp_path / str(keep_days), keep_days=keep_days)
        job = board.start(ANNA, small_spec())
        until(lambda job=job: job.settled)
        board.registry._entries[job.id].used -= 8 * 24 * 3600
        board.forget_unused()
        assert len(board.registry.models(ANNA)) == left and job.folder.exists() == bool(left)


@pytest.mark.parametrize("kind", ["run", "pair"])
def test_delete_my_data_holds_for_what_is_being_trained_too(tmp_path, monkeypatch, kind):
    """A run or a comparison that was stopped by it came back as a model."""
    held = Held(10) if kind == "run" else Held(12, run_comparison, side="moe")
    monkeypatch.setattr(ComparisonJob, "runner", staticmethod(held))
    board = house(tmp_path / "data", held)
    training = TRAINING.replace(steps=30, snapshots=4, autosave_seconds=0.01)
    job = board.start(ANNA, RUN) if kind == "run" else board.compare(ANNA, spec(seeds=1, training=training))
    assert held.reached.wait(60)
    board.forget_visitor(ANNA)
    held.go_on.set()
    until(lambda: job.settled and not board.of(ANNA, kind=Job), 120)
    assert board.registry.models(ANNA) == []
    until(lambda: not list(board.data.work.iterdir()))
    assert not board.data.rows("SELECT 1 FROM models") and not board.data.rows("SELECT 1 FROM jobs")


def test_an_index_of_another_version_is_refused_and_left_alone(tmp_path):
    DataFolder(tmp_path).keep_lessons(ANNA, "{}")
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="Another version") as refused:
        DataFolder(tmp_path).store.rows("SELECT 1")
    assert str(tmp_path) not in str(refused.value)


def test_folders_of_servers_that_crashed_are_removed_and_those_in_use_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(data_folder.tempfile, "tempdir", str(tmp_path))
    in_use, crashed = DataFolder(), tmp_path / f"{data_folder.PREFIX}0123"
    in_use.keep_lessons(ANNA, "{}")
    sent, left = data_folder.folder_for_uploads(), tmp_path / f"{data_folder.PREFIX}4567"
    crashed.mkdir()
    left.mkdir()
    (left / "diary.txt").write_text("of a visitor")
    old, young = tmp_path / "playground-runs-old", tmp_path / "playground-pack-young"
    for folder in (old, young):
        folder.mkdir()
    os.utime(old, (0, 0))
    data_folder.forget_crashed_servers()
    assert in_use.path.exists() and young.exists() and not crashed.exists() and not old.exists()
    assert sent.exists() and sent.parent == tmp_path and not left.exists()


def test_on_a_full_disk_a_run_is_trained_used_and_saved_once_there_is_room(tmp_path, monkeypatch):
    full = threading.Event()
    full.set()

    def unless_full(true):
        def write(path, content):
            if full.is_set():
                raise OSError(28, "No space left on device", str(path))
            return true(path, content)

        return write

    write_file = unless_full(data_folder.write_file)
    for module in ("playground.service.data_folder", "playground.service.notes", "playground.training.autosave"):
        monkeypatch.setattr(f"{module}.write_file", write_file)
    monkeypatch.setattr(checkpoint_module, "write_folder", unless_full(checkpoint_module.write_folder))
    monkeypatch.setattr(data_folder, "RETRY_SECONDS", 0.05)
    board = house(tmp_path / "data")
    job = ended(board.start(ANNA, RUN))
    assert job.state == "finished" and not job.can_resume
    assert board.data.problem and board.data._late
    assert board.registry.get(job.id, ANNA).history.last_step == 40
    full.clear()
    until(lambda: not board.data.problem)
    again = house(killed(board, tmp_path / "left"))
    assert again.registry.get(job.id, ANNA).history.last_step == 40


def test_a_run_whose_state_cannot_be_saved_says_so_once_and_goes_on(tmp_path, monkeypatch):
    def fails(path, write):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("playground.training.autosave.write_file", fails)
    board = house(tmp_path / "data")
    job = ended(board.start(ANNA, RUN))
    (notice,) = (words for words in job.view().notices if "could not" in words)
    assert str(tmp_path) not in notice and job.view().history.last_step == 40 and not job.can_resume
