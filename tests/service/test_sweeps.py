"""Sweeps as a visitor's work: the table grows, Stop keeps it, a restart finds it, and what does not fit is refused."""

import pytest

from playground.service import job as job_module
from playground.service.board import Board
from playground.service.job import Job
from playground.service.limits import LimitError
from playground.service.sweeps import SweepJob
from playground.studies.sweep import Sweep
from tests.ui.runs import ANNA, ended, house, small_spec, until


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
