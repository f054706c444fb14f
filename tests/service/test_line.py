"""Many at once: places are never exceeded, the line is fair, Stop and absence leave it, each is their visitor's own."""

import threading
import time

import pytest

from playground.service.board import Board
from playground.service.job import Job
from playground.service.limits import AWAY_SECONDS, LimitError
from tests.ui.runs import ANNA, BERT, ScriptedRunner, at_once, ended, house, known, small_spec, until

CARLA, DORA = known("carla"), known("dora")


class Counting(ScriptedRunner):
    """Notes who began, in their order, and how many worked at the same time."""

    def __init__(self, **options):
        super().__init__(**options)
        self.now = self.most = 0
        self.began: list[int] = []
        self._counting = threading.Lock()

    def __call__(self, spec, limits, **options):
        with self._counting:
            self.now += 1
            self.most = max(self.most, self.now)
            self.began.append(spec.training.seed)
        try:
            yield from super().__call__(spec, limits, **options)
        finally:
            with self._counting:
                self.now -= 1


def over(board: Board, *visitors: str) -> bool:
    return all(job.settled for visitor in visitors for job in board.of(visitor, kind=Job))


def test_stopped_runs_that_still_work_hold_their_visitors_places_and_no_more(tmp_path):
    runner = Counting(hold_preparing=True)
    board = house(tmp_path, runner, jobs=4)
    visitors = [f"visitor-{number // 6}-" + "v" * 20 for number in range(30)]
    for visitor in visitors:
        board.start(visitor, small_spec())
        board.stop(visitor)
    assert board.counts()["working"] == 4, "stopped, and still at work"
    assert sum(thread.name.startswith("run-") for thread in threading.enumerate()) <= 4
    runner.may_prepare.set()
    until(lambda: over(board, *visitors))
    assert runner.most <= 4 and board.counts()["working"] == 0
    runner = Counting(hold_preparing=True)
    board = house(tmp_path, runner, jobs=2)
    board.start(ANNA, small_spec(seed=1))
    board.stop(ANNA)
    again = board.start(ANNA, small_spec(seed=2))
    berts = board.start(BERT, small_spec(seed=3))
    assert again.state == "waiting" and berts.state == "preparing"
    runner.may_prepare.set()
    until(lambda: over(board, ANNA, BERT))
    assert again.state == "finished" and sorted(runner.began) == [1, 2, 3]


def test_a_page_that_looks_keeps_its_place_and_one_that_stays_away_loses_it(tmp_path, monkeypatch):
    monkeypatch.setattr("playground.service.line.AWAY_SECONDS", 1.0)
    board = house(tmp_path, ScriptedRunner(), jobs=1)
    board.start(ANNA, small_spec(steps=100_000))
    here, away = board.start(CARLA, small_spec()), board.start(BERT, small_spec())
    end = time.monotonic() + 2.0
    while time.monotonic() < end:
        board.of(CARLA)
        time.sleep(0.02)
    assert here.state == "waiting" and here.view().place == 1
    assert away.state == "failed" and "too long" in away.view().message
    monkeypatch.setattr("playground.service.line.AWAY_SECONDS", 60.0)
    board.stop(ANNA)
    until(lambda: over(board, ANNA, CARLA))
    assert here.state == "finished", "and whoever left and came back finds out why"


def test_the_line_has_an_end(tmp_path):
    board = house(tmp_path, ScriptedRunner(), jobs=1, waiting=4)
    school = [*(known(f"pupil {number}") for number in range(3)), CARLA, BERT]
    for visitor in school:
        board.start(visitor, small_spec(steps=10_000), share="a school pages")
    with pytest.raises(LimitError, match=r"4 runs wait.*queue is full"):
        board.start(DORA, small_spec(), share="dora pages")
    for visitor in reversed(school):
        board.stop(visitor)
    until(lambda: over(board, *school))


def test_a_crowd_is_served_in_its_order_each_their_own(tmp_path):
    runner = Counting()
    board = house(tmp_path, runner, jobs=3, models=100, waiting=100)
    visitors = [f"visitor-{number:02}-" + "v" * 20 for number in range(24)]
    jobs = {}

    def visit(number: int) -> None:
        jobs[number] = board.start(visitors[number], small_spec(seed=number, steps=15))
        until(lambda: over(board, visitors[number]), seconds=60)

    at_once(len(visitors), visit)
    assert runner.most <= 3 and sorted(runner.began) == list(range(len(visitors)))
    asked = sorted(jobs, key=lambda number: jobs[number].turn)
    assert max(abs(asked.index(number) - at) for at, number in enumerate(runner.began)) <= 3, "nobody is passed by"
    for number, visitor in enumerate(visitors):
        assert [job.id for job in board.of(visitor)] == [jobs[number].id]
        assert [entry.id for entry in board.registry.models(visitor) if not entry.shipped] == [jobs[number].id]


def test_no_network_keeps_the_line_or_all_places_for_itself(tmp_path):
    """63 calls from one address filled the line, and a page was refused although two places were free."""
    board = house(tmp_path, ScriptedRunner(), jobs=2, waiting=6)
    for number in range(4):
        board.start(known(f"crowd {number}"), small_spec(steps=10_000), by_program=True, share="an office programs")
    with pytest.raises(LimitError, match="3 runs of your network's programs wait"):
        board.start(known("crowd 9"), small_spec(), by_program=True, share="an office programs")
    pages = [board.start(who, small_spec(steps=10_000), share=f"{who} pages") for who in (ANNA, BERT, CARLA)]
    assert all(page.active for page in pages) and board.counts()["waiting"] == 5
    until(lambda: pages[0].state == "training")  # one of the two places is never a program's
    for who in (ANNA, BERT, CARLA, *(known(f"crowd {number}") for number in range(4))):
        board.stop(who)
    board = house(tmp_path, Counting(), jobs=3, jobs_per_address=2)
    crowd = [known(f"crowd {number}") for number in range(6)]
    for number, who in enumerate(crowd):
        kind = "programs" if number % 2 else "pages"
        board.start(who, small_spec(steps=10_000), by_program=bool(number % 2), share=f"a crowd {kind}")
    assert board.counts()["working"] == 2 and board.counts()["waiting"] == 4
    page = board.start(ANNA, small_spec(steps=10_000), share="anna pages")
    assert page.busy
    for who in (*reversed(crowd), ANNA):
        board.stop(who)
    until(lambda: over(board, ANNA, *crowd))


@pytest.mark.parametrize("kind", ["local", "class"])
def test_whoever_is_away_makes_room_for_those_who_wait_but_not_on_ones_own_machine(tmp_path, kind):
    board = house(tmp_path, ScriptedRunner(), jobs=1, kind=kind)
    away = board.start(ANNA, small_spec(steps=100_000))
    until(lambda: away.state == "training")
    away.seen = time.monotonic() - AWAY_SECONDS - 1
    waits = board.start(BERT, small_spec(steps=100_000))
    if kind == "local":
        assert away.state == "training" and waits.state == "waiting"
        board.stop(ANNA)
    until(lambda: board.of(BERT)[0].state == "training")
    assert away.settled and away.can_resume, "what it has learned is kept"
    board.stop(BERT)
    until(lambda: over(board, BERT))


def test_a_run_that_leaves_the_line_of_a_resume_is_what_it_was(tmp_path):
    board = house(tmp_path, ScriptedRunner(), jobs=1)
    run = ended(board.start(ANNA, small_spec(steps=20)))
    before = run.view()
    other = board.start(BERT, small_spec(steps=10_000))
    for leave in (lambda: board.stop(ANNA), lambda: run.leave("Away too long.")):
        assert board.resume(ANNA, run.id, more_steps=20).state == "waiting" and run.spec.training.steps == 40
        leave()
        assert run.state == "finished" and run.can_resume
        assert run.spec.training.steps == before.planned_steps == 20 and not run.view().lengthened
    board.stop(BERT)
    ended(other)
    board.resume(ANNA, run.id, more_steps=20)
    until(lambda: run.settled and run.view().history.last_step == 40)
    assert run.view().lengthened and run.view().planned_steps == 40


def test_networks_take_turns_so_that_a_crowd_behind_one_address_keeps_nobody_else_waiting(tmp_path):
    """Sixty invented visitors of one address stood before whoever came after them."""
    board = house(tmp_path, Counting(), jobs=2, waiting=60)
    crowd = [known(f"crowd {number}") for number in range(12)]
    mob = [board.start(who, small_spec(steps=10_000), share="a crowd pages") for who in crowd]
    assert sum(job.busy for job in mob) == 2
    one, other = (board.start(who, small_spec(steps=10_000), share=f"{who} pages") for who in (ANNA, BERT))
    assert [one.view().place, other.view().place, mob[2].view().place] == [1, 2, 3]
    board.stop(crowd[0])
    until(lambda: one.busy)
    late = board.start(CARLA, small_spec(steps=10_000), share="carla pages")
    board.stop(crowd[1])
    until(lambda: mob[2].busy)  # the crowd has its turn, too: its last one was before the others came
    board.stop(ANNA)
    until(lambda: other.busy)
    board.stop(crowd[2])
    until(lambda: late.busy)
    assert [job.state for job in mob[3:]] == ["waiting"] * 9
    for who in (*reversed(crowd), CARLA, ANNA, BERT):
        board.stop(who)
    until(lambda: over(board, ANNA, BERT, CARLA, *crowd))
