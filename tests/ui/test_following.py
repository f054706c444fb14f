"""What a page shows of runs is one state: it stays, every tab says the same, no tick bricks it."""

from __future__ import annotations

import dataclasses
import json
import time
import urllib.request

import pytest
from playground.service.balance import BalanceJob
from playground.ui.following import SEEN_ON, Following

from playground.service.board import Board
from playground.service.job import Job
from playground.service.limits import AWAY_SECONDS
from playground.service.models import Registry
from playground.service.views import RunView
from playground.ui.app import build_app, launch
from playground.ui.followers import LONG, ordinal, tick

from .raw import RawCaller
from .runs import known, small_limits, until
from .test_limits import press_train


@pytest.fixture(scope="module")
def served():
    """The whole page with one place for training; its board, and its address."""
    limits = small_limits(jobs=1, seconds=60.0, waiting=3)
    board = Board(Registry(limits), limits)
    app = build_app(limits, board.registry, board)
    _, address, _ = launch(app, port=None, prevent_thread_lock=True, quiet=True)
    yield board, address
    app.close(verbose=False)


def test_whoever_runs_the_server_reads_numbers_and_nothing_else(served):
    board, address = served
    fred = known("fred")
    assert press_train(RawCaller(address, "freds"), fred, Steps=20)[0] == 200
    until(lambda: board.of(fred) and board.of(fred)[0].settled)
    with urllib.request.urlopen(address + "status", timeout=30) as answer:
        assert answer.headers["content-type"] == "application/json"
        told = json.load(answer)
    assert told["jobs"] == board.counts() and told["models"] == board.registry.counts()
    assert told["jobs"]["places"] == 1 and told["models"]["of_visitors"] >= 1 and told["models"]["bytes"] > 0
    assert told["limits"]["models_per_visitor"] == 100 and told["caches"]["bytes"] <= told["caches"]["most_bytes"]
    assert told["page"]["sessions"] > 0 and told["page"]["threads"] > 1
    assert all(isinstance(number, int) for part in told.values() for number in part.values())


def test_balance_runs_are_found_again_and_are_nobody_elses(served):
    board, address = served
    gina, hans = known("gina"), known("hans")
    status, answer = RawCaller(address, "ginas").call("unbalanced-start", browserstate=gina)
    assert status == 200, answer
    (job,) = board.of(gina, kind=BalanceJob)
    until(lambda: job.has_result, seconds=60)
    status, answer = RawCaller(address, "hanss").call("unbalanced-stop", browserstate=hans)
    assert status == 200 and job.active
    RawCaller(address, "ginas").call("unbalanced-stop", browserstate=gina)
    until(lambda: job.settled)
    for session, visitor, seen in (("ginas", gina, True), ("a-reload", gina, True), ("hanss", hans, False)):
        caller = RawCaller(address, session)
        said = caller.component("unbalanced-said")
        ticks = [d for d in caller.config["dependencies"] if any(event == "tick" for _, event in d["targets"])]
        look = next(d for d in ticks if said in d["outputs"])
        status, answer = caller.post(look["id"], [visitor, ""])
        assert status == 200 and (job.message in answer) is seen


def test_a_page_looks_often_at_what_is_new_or_nearly_over_and_seldom_at_what_takes_long_or_waits():
    assert tick(None) < tick(LONG) == tick(0.0) < 0.5 < tick(LONG + 1) <= 2 < tick(None, waits=True) < AWAY_SECONDS / 10


def test_what_is_over_is_looked_at_soon_until_its_model_is_there():
    over = RunView("a", "a", "finished", busy=True)
    assert Following.pause(None, over) < 0.5
    assert Following.pause(None, dataclasses.replace(over, busy=False)) > 2


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (21, "21st"), (113, "113th")],
)
def test_places_are_said_as_people_say_them(number, said):
    assert ordinal(number) == said


def test_whatever_kind_of_job_goes_on_other_tabs_say_where_it_is_seen():
    kinds = Job.__subclasses__()
    assert len(kinds) >= 3 and all(SEEN_ON[kind] for kind in kinds)


def test_a_hidden_page_keeps_its_place_and_one_that_is_gone_loses_it_within_a_minute(served):
    """A browser wakes a hidden page's clocks once a minute; places were kept for 75 seconds because of that."""
    board, address = served
    assert press_train(RawCaller(address, "noras"), known("nora"), Steps=400)[0] == 200
    (job,) = board.of(known("nora"))
    job.seen -= 100
    with urllib.request.urlopen(f"{address}/news?visitor={known('nora')}") as answer:
        assert json.load(answer)["pause"] > 0
    assert time.monotonic() - job.seen < 50 and AWAY_SECONDS < 60
    board.stop(known("nora"))
    until(lambda: job.settled)
