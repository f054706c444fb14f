"""What a page shows of runs is one state: it stays, every tab says the same, no tick bricks it."""

from __future__ import annotations

import dataclasses
import json
import time
import urllib.request
from pathlib import Path

import pytest

import playground
from playground.service.balance import BalanceJob
from playground.service.board import Board
from playground.service.comparisons import ComparisonJob
from playground.service.job import Job
from playground.service.limits import AWAY_SECONDS
from playground.service.models import Registry
from playground.service.views import RunView
from playground.ui.app import build_app, launch
from playground.ui.followers import LONG, ordinal, tick
from playground.ui.following import SEEN_ON, Following
from tests.service.test_comparisons import TRAINING, spec

from .raw import RawCaller
from .runs import TEXT, known, small_limits, until
from .test_limits import press_train

CARLA, DORA, EMIL = known("carla"), known("dora"), known("emil")


@pytest.fixture(scope="module")
def served():
    """The whole page with one place for training; its board, and its address."""
    limits = small_limits(jobs=1, seconds=60.0, waiting=3)
    board = Board(Registry(limits), limits)
    app = build_app(limits, board.registry, board)
    _, address, _ = launch(app, port=None, prevent_thread_lock=True, quiet=True)
    yield board, address
    app.close(verbose=False)


class Visit:
    """An open page of a visitor: presses buttons, ticks, and remembers what stands where."""

    def __init__(self, address: str, visitor: str, name: str = ""):
        self.caller = RawCaller(address, f"{visitor}{name}")
        self.visitor, self.model, self.beside, self.stands = visitor, None, [], {}

    def take(self, answer: tuple[int, str]) -> int:
        status, text = answer
        outputs = self.caller.called["outputs"]
        for number, value in zip(outputs, json.loads(text).get("data") or []):
            if value != {"__type__": "update"}:
                named = self.caller.components[number]["props"].get("elem_id") or number
                self.stands[named] = value
                if named == "model" and value.get("value"):
                    self.model = value["value"]
                if named == "beside" and "value" in value:
                    self.beside = value["value"]
        return status

    def press(self, name: str, event: str = "click", **changes) -> int:
        who = {
            "browserstate": self.visitor,
            "Model on all tabs": self.model or "shipped-stories",
            "beside": self.beside,
        }
        return self.take(self.caller.call(name, event, **who, **changes))

    def train(self, **changes) -> int:
        here = {"beside": self.beside, "Model on all tabs": self.model or "shipped-stories"}
        return self.take(press_train(self.caller, self.visitor, **here, **changes))

    def tick(self, seconds: float = 0.0) -> None:
        """Look as a page does, for so long."""
        end = time.monotonic() + seconds
        while True:
            assert self.press("timer", "tick") == 200
            if time.monotonic() >= end:
                return
            time.sleep(0.05)

    def status(self) -> str:
        return str(self.stands["status"])

    def until_over(self, board: Board) -> None:
        until(lambda: all(job.settled for job in board.of(self.visitor)))
        self.tick()


def test_an_error_stays_until_something_new_is_asked(served):
    board, address = served
    page = Visit(address, CARLA)
    page.train(Steps=20)
    page.until_over(board)
    assert "All 20 steps are done" in page.status()
    page.train(text="three little words")
    page.until_over(board)
    page.tick(1.0)
    assert "notice-error" in page.status() and "tokens" in page.status()
    assert "All 20 steps are done" in page.status(), "above what was there before"
    another = Visit(address, CARLA, "in another tab")
    another.tick()
    assert "notice-error" in another.status()
    page.model = "shipped-stories"
    page.press("model", "change")
    assert "notice-error" not in page.status()
    another.tick()
    assert "notice-error" not in another.status()


def test_a_tick_that_no_longer_applies_is_dropped(served):
    board, address = served
    page = Visit(address, DORA)
    page.train(Steps=20)
    page.until_over(board)
    first = page.model
    page.train(Steps=20, Seed=1)
    page.until_over(board)
    page.beside = [first]
    assert page.press("beside", "input") == 200 and page.beside == [first], "a visitor's own tick stays"
    page.train(text=TEXT.replace("cat", "cow"), Steps=20)
    page.until_over(board)
    assert page.beside == [] and "All 20 steps are done" in page.status()
    page.beside = [first]  # as a page sends that has not heard of it
    page.model = "shipped-stories"
    assert page.press("model", "change") == 200 and page.beside == []


def test_a_second_tab_says_what_the_first_did(served):
    board, address = served
    one, two = Visit(address, EMIL, "one"), Visit(address, EMIL, "two")
    two.tick()
    one.train(Steps=3000)
    two.tick()
    assert 'role="progressbar"' in two.status()
    assert two.stands["stop-button"]["interactive"] and not two.stands["train-button"]["interactive"]
    until(lambda: board.of(EMIL)[0].view().history.last_step > 0)  # else there is nothing to go on with
    two.press("stop-button")
    two.until_over(board)
    one.tick()
    assert all("Stopped after" in page.status() for page in (one, two))
    assert one.model == two.model == board.of(EMIL)[0].id
    one.press("resume-button")
    two.tick()
    assert two.stands["stop-button"]["interactive"]
    one.press("stop-button")
    two.until_over(board)
    one.tick()
    assert one.press("rename", **{"Name of the run that is shown": "The best one"}) == 200
    two.tick()
    assert "The best one" in two.status() and "The best one" in str(two.stands["model"]["choices"])
    assert one.press("delete") == 200 and board.of(EMIL), "nobody was sure"
    assert one.press("delete", sure="sure") == 200 and board.of(EMIL) == []
    two.tick()
    assert "The best one" not in two.status() and two.model == "shipped-stories"


def test_both_tabs_predict_with_the_weights_that_are_used(served):
    board, address = served
    one, two = Visit(address, known("flora"), "one"), Visit(address, known("flora"), "two")
    page_of_text = (Path(playground.__file__).parent / "data/texts/lighthouse.txt").read_text(encoding="utf-8")[:1500]
    shape = {"Width (d_model)": 64, "Layers": 2, "Context": 32}
    one.train(text=page_of_text, Steps=120, **shape, **{"Steps between evaluations": 5})
    one.until_over(board)
    (job,) = board.of(one.visitor)
    two.model = job.id
    two.press("model", "change")
    step, before = job.view().kept, [page.stands["predictions"]["summary"] for page in (one, two)]
    assert before[0] == before[1] and one.press("use-best") == 200
    two.tick()
    for page in (one, two):
        shown = page.stands["predictions"]
        assert f"at step {step}" in str(shown["figure"]) and shown["summary"] != before[0]
        assert f"step {step}" in shown["about"]["line"]


def test_two_visitors_and_one_place(served):
    board, address = served
    anna, bert = Visit(address, known("anna")), Visit(address, known("bert"))
    anna.train(Steps=100_000)
    bert.train(Steps=20)
    bert.tick()
    assert "You are 1st in line" in bert.status() and bert.stands["stop-button"]["interactive"]
    assert "in line" not in anna.status()
    bert.press("stop-button")
    assert "waited in line" in bert.status() and bert.stands["train-button"]["interactive"]
    bert.train(Steps=20)
    anna.press("stop-button")
    bert.until_over(board)
    assert "All 20 steps are done" in bert.status()
    anna.until_over(board)


def test_whoever_runs_the_server_reads_numbers_and_nothing_else(served):
    board, address = served
    visit = Visit(address, known("fred"))
    visit.train(Steps=20)
    visit.until_over(board)
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


def test_the_train_tab_says_that_a_comparison_goes_on_elsewhere(served):
    board, address = served
    ida = known("ida")
    job = board.compare(ida, spec(training=TRAINING.replace(steps=100_000)))
    page = Visit(address, ida)
    page.tick()
    assert f"{job.name} goes on: see it on the tab Dense vs MoE" in page.status()
    assert page.train(Steps=20) == 500, "one thing at a time"
    board.stop(ida, kind=ComparisonJob)
    until(lambda: job.settled)
    page.tick()
    assert "goes on" not in page.status()


def test_a_forecast_is_made_anew_when_a_run_has_shown_how_fast_this_is(served):
    """A run that is over is chosen, and with that the forecast beside the settings follows."""
    caller = RawCaller(served[1], "forecast")
    outlook, model = caller.component("outlook"), caller.component("model")
    follows = [d for d in caller.config["dependencies"] if [model, "change"] in [list(t) for t in d["targets"]]]
    (remade,) = (d for d in follows if outlook in d["outputs"])
    status, answer = caller.post(remade["id"], [caller.components[i]["props"].get("value") for i in remade["inputs"]])
    assert status == 200 and ("a guess until" in answer) == served[0].pace.guesses


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
    visit = Visit(address, known("nora"))
    visit.train(Steps=400)
    (job,) = board.of(known("nora"))
    job.seen -= 100
    with urllib.request.urlopen(f"{address}/news?visitor={known('nora')}") as answer:
        assert json.load(answer)["pause"] > 0
    assert time.monotonic() - job.seen < 50 and AWAY_SECONDS < 60
    visit.press("stop-button")
    visit.until_over(board)
