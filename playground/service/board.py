"""Board: who may run now, who waits and for how long; the one place where visitors' jobs start, stop and go on.

There are `Limits.jobs` places; a job holds one as long as its thread works, be it only to put things away. Whoever asks
for more joins a line. It is fair: networks (`share`: an address, its pages and its programs apart) take turns, the one
with the fewest at work first, and no address has more than `Limits.jobs_per_address` places. Within a network, every
visitor's first job comes before anybody's second, in the order in which they were asked for, and newcomers never pass
those of an earlier round. A job that works for long lends its place for a while to a
network that has none. Where the line is full, a visitor from a network with fewer jobs in it takes the last place of
the network with the most. A page that is open keeps the places of its visitor's jobs; one that is gone loses them
after `AWAY_SECONDS`, those at work where others wait. Programs have no more than a few of the places.

Jobs are in threads of the server, each reachable by its visitor alone; pages come and go, and follow them. What is
needed to find a job again is noted in the data folder when it is asked for, when it begins and when it is over: after a
restart those that waited or worked stand in line again, in the old order, and go on once their visitor's page is back.
Nothing here knows what a page looks like.
"""

from __future__ import annotations

import heapq
import itertools
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ..atomic_files import write_file
from ..links import RunCard
from ..model import Transformer
from ..storage import Checkpoint
from ..training.sweep import Sweep
from .comparisons import ComparisonJob, ComparisonSpec
from .data_folder import new_id, tidy_name
from .job import Job
from .limits import (
    AWAY_SECONDS,
    FAILED_RUNS,
    REST_SECONDS,
    RETURN_SECONDS,
    TRAININGS_WITHOUT_PAGE,
    TURN_SECONDS,
    LimitError,
    Limits,
)
from .models import Entry, Registry
from .pace import Pace
from .run_job import RunJob, Runner
from .runs import RunSpec, Source, run_training
from .sweeps import SweepJob

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Job)

NOTES = "job.json"
"""In a job's folder: what is noted of it."""
MOST_TRIES = 3
"""Server stops that a job may meet without progress in between. After these it no longer starts by itself."""
_FOUND: dict[str, Callable[..., Job]] = {kind.kind: kind.found for kind in (RunJob, ComparisonJob, SweepJob)}


class Board:
    """All jobs of the house."""

    def __init__(self, registry: Registry, limits: Limits, runner: Runner = run_training):
        self.registry, self.limits, self.runner, self.pace = registry, limits, runner, Pace()
        self.data = registry.data
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._turns: dict[str, tuple[int, int]] = {}  # id → round, and when it was asked for: who is less begins first
        self._round, self._clock = 0, itertools.count()
        self._served: dict[str, int] = {}  # share → when it last had its turn
        self._names: dict[tuple[str, str], int] = {}  # visitor and kind → how many so far, for their names
        self._looked_up: set[str] = set()  # visitors whose jobs of before a restart are here
        self.told: Callable[[RunJob], None] | None = None
        """Hears of every run: see `RunJob.told`."""
        registry.on_leaving, registry.on_opening = self._left, self._opened
        self._began = time.monotonic()
        self._stand_in_line_again()

    # ---- what visitors ask for ---------------------------------------------------------------------------------------

    def start(
        self,
        visitor: str,
        spec: RunSpec,
        *,
        repeats: RunCard | None = None,
        by_program: bool = False,
        share: str = "",
        name: str = "",
    ) -> RunJob:
        """Begin a run for this visitor, perhaps to repeat one, or put it in line. Raises LimitError.

        Without a name it is called after its text.
        """
        name = tidy_name(name) if name.strip() else ""
        self.limits.check_training(spec.model, spec.training)
        self._look_up(visitor)  # reads files: nobody else waits for that
        with self._lock:
            number = self._admit(visitor, RunJob, share)
            training = spec.training.replace(max_seconds=self.limits.seconds)
            name = name or f"Run {number} · {spec.source.title}"
            spec = replace(spec, training=training)
            job = RunJob(new_id(), visitor, name, spec, self.limits, self.registry, repeats)
            job.by_program, job.number, job.share = by_program, number, share
            self._queue(job)
        return self._noted(job)

    def compare(self, visitor: str, spec: ComparisonSpec, *, share: str = "") -> ComparisonJob:
        """Begin a comparison for this visitor, or put it in line. Raises LimitError."""
        self.limits.check_comparison(spec.seeds)
        matched = spec.matched()
        for config in (matched.dense, matched.moe):
            self.limits.check_training(config, spec.training)
        self._look_up(visitor)
        with self._lock:
            number = self._admit(visitor, ComparisonJob, share)
            name = f"Comparison {number} · {spec.source.title}"
            job = ComparisonJob(new_id(), visitor, name, spec, self.limits, self.registry)
            job.number, job.share = number, share
            self._queue(job)
        return self._noted(job)

    def sweep(self, visitor: str, spec: RunSpec, sweep: Sweep, *, share: str = "") -> SweepJob:
        """Begin a sweep in place of the visitor's last one, or put it in line. Raises ValueError, or LimitError."""
        for value in sweep.values:
            self.limits.check_training(*sweep.configs(spec.model, spec.training, value))
        self._look_up(visitor)
        with self._lock:
            number = self._admit(visitor, SweepJob, share)
            for earlier in self.of(visitor, kind=SweepJob):
                self._forget(earlier)
            training = spec.training.replace(sample_every=0, snapshots=0)
            name, spec = f"Sweep {number} · {spec.source.title}", replace(spec, training=training)
            job = SweepJob(new_id(), visitor, name, spec, sweep, self.limits, self.registry)
            job.number, job.share = number, share
            self._queue(job)
        return self._noted(job)

    def resume(self, visitor: str, run_id: str | None, *, more_steps: int = 0) -> RunJob:
        """Go on with a stopped run, or train a finished one for `more_steps` longer."""
        self._look_up(visitor)
        with self._lock:
            job = self.find(visitor, run_id)
            if job is None or not job.can_resume:
                raise ValueError("There is no run to continue. Start one with Train.")
            if not job.settled:
                raise ValueError("This run is still saving its files. Try again in a moment.")
            self._check_room(visitor, job.share)
            done, planned = job.view().history.last_step, job.spec.training.steps
            steps = planned if done < planned else done + max(more_steps, 1)
            seconds = job.view().history.steps["seconds"]
            training = job.spec.training.replace(
                steps=steps, max_seconds=self.limits.seconds + (seconds[-1] if seconds else 0.0)
            )
            if (job.view().history.finished or {}).get("reason") == "risen":
                training = training.replace(patience=0)  # whoever asks for more steps has been told
            self.limits.check_training(job.spec.model, training)
            job.go_on(training)
            self._queue(job)
        return self._noted(job)

    def use_best(self, visitor: str, run_id: str | None) -> RunJob:
        """Let a run's best weights be its model from now on. Raises ValueError where there are no better ones."""
        job = self.find(visitor, run_id)
        if job is None:
            raise ValueError("Only the best weights of your own runs can be used.")
        best = job.best()  # reads and tries a model: nobody else waits for that
        with self._lock:
            job.use(best)
        self.registry.save(job.id)
        return self._noted(job)

    def stop(self, visitor: str, run_id: str | None = None, *, kind: type[K] = RunJob) -> K | None:
        """Stop this visitor's job (the latest active one unless named), in line or at work; None if there is none."""
        job = self.find(visitor, run_id, kind=kind) if run_id else self.active(visitor, kind=kind)
        if job is not None and job.active:
            job.stop()
            self._fill()
            return job
        return None

    def rename(self, visitor: str, model_id: str, name: str) -> None:
        """Call one of this visitor's models, and the run it came from, something else. Raises ValueError."""
        name = self.registry.rename(model_id, visitor, name)
        for job in self.of(visitor, kind=Job):
            if job.keeps(model_id):
                job.renamed(model_id, name)
                self._noted(job)

    def delete(self, visitor: str, model_id: str) -> None:
        """Let go of one of this visitor's models, of its run and of its files. Raises ValueError."""
        with self._lock:
            if any(job.active and job.keeps(model_id) for job in self.of(visitor, kind=Job)):
                raise ValueError("This model is still being trained: stop it first.")
            self.registry.remove(model_id, visitor)

    def forget_visitor(self, visitor: str) -> None:
        """Delete all that is kept of this visitor's work; jobs that go on are stopped and leave nothing behind."""
        for job in self.of(visitor, kind=Job):
            job.unwanted = True
            job.stop()
            with self._lock:
                self._forget(job)
        self.registry.forget_visitor(visitor)
        self.data.forget_lessons(visitor=visitor)
        self._fill()

    def keep_house(self) -> None:
        """From now on, look every hour for what nobody uses any more."""

        def hourly() -> None:
            while True:
                self.forget_unused()
                time.sleep(3600)

        if self.limits.keep_days is not None:
            threading.Thread(target=hourly, name="house", daemon=True).start()

    def forget_unused(self) -> None:
        """Let go of what nobody has used for as long as this kind of place keeps it."""
        self.registry.forget_unused()
        if self.limits.keep_days is None:
            return
        since = time.time() - self.limits.keep_days * 24 * 3600
        for row in self.data.rows("SELECT id FROM jobs WHERE state = 'over' AND used < ?", since):
            with self._lock:
                job = self._jobs.get(row["id"])
                if job is not None and not self.registry.has(row["id"], job.visitor):
                    self._forget(job)
            if job is None:
                self.data.delete(row["id"])
        self.data.forget_lessons(before=since)

    # ---- what there is -----------------------------------------------------------------------------------------------

    def find(self, visitor: str | None, run_id: str | None, *, kind: type[K] = RunJob) -> K | None:
        """This visitor's run of that id; None for anyone else's."""
        return next((job for job in self.of(visitor, kind=kind) if job.id == run_id), None)

    def source_of(self, checkpoint: Checkpoint) -> Source | None:
        """What the run or comparison learned from that made this very checkpoint; None where none here did."""
        with self._lock:
            jobs = list(self._jobs.values())
        made = ((job, model_id) for job in jobs for model_id in job.made)
        return next((job.spec.source for job, model_id in made if self.registry.here(model_id) is checkpoint), None)

    def active(self, visitor: str | None, *, kind: type[K] = RunJob) -> K | None:
        """The visitor's job that is going on now, or waits to."""
        return next((job for job in reversed(self.of(visitor, kind=kind)) if job.active), None)

    def of(self, visitor: str | None, *, kind: type[K] = RunJob) -> list[K]:
        """All of this visitor's jobs that are still remembered, the oldest first.

        Asking is the sign that somebody is there, which keeps the places of jobs that wait or work.
        """
        self._look_up(visitor)
        with self._lock:
            mine = [job for job in self._jobs.values() if job.visitor == visitor]
            for job in mine:
                job.seen = time.monotonic()
            if any(job.state == "waiting" or job.resting for job in mine):
                self._fill()
            return sorted((job for job in mine if isinstance(job, kind)), key=lambda job: self._turns[job.id][1])

    def failed(self, visitor: str | None, *, kind: type[K] = RunJob) -> K | None:
        """This visitor's latest job, if nothing came of it and nothing new was asked since."""
        latest = next(reversed(self.of(visitor, kind=kind)), None)
        return latest if latest is not None and latest.state == "failed" else None

    def dismiss(self, visitor: str | None, kind: type[Job] = RunJob) -> None:
        """Something new was asked: why the last job came to nothing need not be said any more."""
        with self._lock:
            for job in self.of(visitor, kind=kind):
                if job.state == "failed":
                    self._forget(job)

    def news(self, visitor: str | None) -> tuple:
        """Something that is another one whenever any of this visitor's jobs or models has changed."""
        jobs = tuple((job.id, job.version, job.settled) for job in self.of(visitor, kind=Job))
        models = self.registry.news(visitor)
        return jobs, (*models, self.data.problem) if models and self.data.problem else models

    def counts(self) -> dict[str, int]:
        """How many jobs work, wait, and are remembered."""
        with self._lock:
            jobs = list(self._jobs.values())
        return {
            "places": self.limits.jobs,
            "working": sum(job.at_work for job in jobs),
            "waiting": sum(job.state == "waiting" for job in jobs),
            "remembered": len(jobs),
        }

    # ---- places and the line -----------------------------------------------------------------------------------------

    def _admit(self, visitor: str, kind: type[Job], share: str) -> int:
        """Make room for one more: its number for this visitor. Raises LimitError."""
        self._check_room(visitor, share)
        earlier = self.of(visitor, kind=kind)
        again = bool(earlier) and earlier[-1].state == "failed"  # the number of one that came to nothing is free
        self._clear_away(visitor)
        self._names[visitor, kind.kind] = number = max(self._names.pop((visitor, kind.kind), 0) + (not again), 1)
        while len(self._names) > 10_000:
            self._names.pop(next(iter(self._names)))
        return number

    def _check_room(self, visitor: str, share: str) -> None:
        mine = [job for job in self.of(visitor, kind=Job) if job.active]
        if len(mine) >= self.limits.jobs_per_visitor:
            raise LimitError(f"You already have a {mine[-1].kind} in progress. Stop it, or wait until it is done.")
        line = [job for job in self._line() if not job.resting]
        if len(line) < self.limits.waiting:
            return
        counts = Counter(job.share for job in line)
        most = max(counts, key=counts.__getitem__)
        if counts[most] <= counts[share] + 1:
            raise LimitError(f"{len(line)} runs wait in line for a place, and no more can: try again in a few minutes.")
        last = next(job for job in reversed(line) if job.share == most)
        last.leave("The line was full, and most in it came from your network: start again in a few minutes.")

    def _queue(self, job: Job) -> None:
        # a visitor's rounds follow each other; a newcomer joins the one that is going on (start-time fair queueing)
        others = [other for other in self.of(job.visitor, kind=Job) if other is not job and not other.settled]
        rounds = [self._turns[other.id][0] + 1 for other in others]
        self._turns[job.id] = max([self._round, *rounds]), next(self._clock)
        self._jobs[job.id] = job
        self._stand_in_line(job)
        self._fill()

    def _stand_in_line(self, job: Job) -> None:
        start = job.start
        if isinstance(job, RunJob):
            further = {"parent": partial(self._parent, job)} if job.spec.parent else {}
            start, job.told = partial(job.start, partial(self.runner, **further)), self.told
        job.queue(start, partial(self._ended, job), partial(self._noted, job))

    def _parent(self, job: RunJob) -> tuple[Checkpoint, Source | None]:
        checkpoint = self.registry.get(job.spec.parent, job.visitor)
        return checkpoint, self.source_of(checkpoint)

    def _line(self) -> list[Job]:
        """Those who wait, in the order in which they will begin: networks in turns, each in its own order.

        Those who have rested for long come first, the others who rest after the networks that have nothing at work.
        """
        waiting = [job for job in self._jobs.values() if job.state == "waiting"]
        resting = sorted((job for job in self._jobs.values() if job.resting), key=lambda job: job.turn_began)
        rested = [job for job in resting if time.monotonic() - job.turn_began > REST_SECONDS]
        ahead = Counter(job.share for job in self._jobs.values() if job.busy)
        places = []
        for job in sorted(waiting, key=lambda job: self._turns[job.id]):
            round_, asked = self._turns[job.id]
            # a job asked for before its network's last turn counts as asked for at that turn
            places.append((ahead[job.share], round_, max(asked, self._served.get(job.share, asked)), asked, job))
            ahead[job.share] += 1
        line = [job for *_, job in sorted(places, key=lambda place: place[:-1])]
        first = sum(place[0] == 0 for place in places)
        return [*rested, *line[:first], *(job for job in resting if job not in rested), *line[first:]]

    def _fill(self) -> None:
        """Let those in line begin for whom there is a place, and tell the others where they stand."""
        with self._lock:
            now = time.monotonic()
            for job in self._line():
                away = now - (self._began if job.seen is None else job.seen)
                if away > (RETURN_SECONDS if job.seen is None else AWAY_SECONDS):
                    job.leave("The page was away too long, and the place in the line was given up: start again.")
            self._stop_for_others(now)
            self._rest_for_others(now)
            for job in self._line():
                at_work = [other for other in self._jobs.values() if other.at_work]
                # also those that were stopped and still work: pressing Train and Stop in turns gains no second place
                mine = sum(other.visitor == job.visitor for other in self._jobs.values() if other.busy) - job.resting
                programs = min(TRAININGS_WITHOUT_PAGE, max(self.limits.jobs - 1, 1))
                if job.seen is None or (job.by_program and sum(other.by_program for other in at_work) >= programs):
                    continue
                near = (
                    sum(_network(other) == _network(job) for other in self._jobs.values() if other.busy) - job.resting
                )
                if (
                    len(at_work) < self.limits.jobs
                    and mine < self.limits.jobs_per_visitor
                    and near < self.limits.jobs_per_address
                ):
                    self._round = max(self._round, self._turns[job.id][0])
                    self._served.pop(job.share, None)
                    self._served[job.share] = next(self._clock)
                    while len(self._served) > 10_000:
                        self._served.pop(next(iter(self._served)))
                    job.go()
            free = [self._left_of(job, now) for job in self._jobs.values() if job.at_work]
            free = [0.0] * (self.limits.jobs - len(free)) + free
            heapq.heapify(free)
            for place, job in enumerate(self._line(), 1):
                wait = heapq.heappop(free)
                heapq.heappush(free, wait + job.expected(self.pace.seconds))
                job.stands(place, wait)

    def _stop_for_others(self, now: float) -> None:
        """Let those at work whose visitors are away make room for those who wait, what they have learned kept."""
        at_work = [job for job in self._jobs.values() if job.at_work]
        if self.limits.kind == "local" or len(at_work) < self.limits.jobs or not self._line():
            return
        for job in [job for job in self._jobs.values() if job.busy]:
            if job.active and now - (job.seen or job.began) > AWAY_SECONDS:
                job.stop()

    def _rest_for_others(self, now: float) -> None:
        """Let the job that has worked longest rest, if a network that has nothing at work waits for a place.

        No more rest than there are places, so that at most twice as many runs are in memory.
        """
        busy = [job for job in self._jobs.values() if job.busy]
        at_work = [job for job in busy if job.at_work]
        if self.limits.kind == "local" or len(at_work) < self.limits.jobs:
            return
        networks, line = {_network(job) for job in busy}, self._line()
        wait = len(busy) < 2 * self.limits.jobs and any(
            _network(job) not in networks and job.seen is not None for job in line
        )
        wait = wait or any(job.resting and now - job.turn_began > REST_SECONDS for job in line)
        long = [job for job in at_work if job.state == "training" and now - job.turn_began > TURN_SECONDS]
        if wait and long:
            min(long, key=lambda job: job.turn_began).rest()

    def _left_of(self, job: Job, now: float) -> float:
        if not job.active or job.state == "stopping":
            return 1.0
        left = job.time_left
        return left if left is not None else max(job.expected(self.pace.seconds) - (now - job.began), 1.0)

    # ---- how jobs go -------------------------------------------------------------------------------------------------

    def _ended(self, job: Job) -> None:
        """A job's thread has let go of its place."""
        with self._lock:
            for model_id in job.made if job.unwanted else ():
                self.registry.remove(model_id, job.visitor)
            if job.emptied or job.unwanted:
                self._forget(job)
            self._fill()
        self._noted(job)
        if isinstance(job, RunJob):
            self.pace.learn(job.view(), job.spec.training, job.tokens)

    def _left(self, entry: Entry) -> None:
        """A model has left the registry: its files go along, and with the last one its job."""
        with self._lock:
            job = next((job for job in self._jobs.values() if job.keeps(entry.id)), None)
            if job is not None:
                job.let_go(entry.id)
                if job.emptied:
                    self._forget(job)
            self.data.delete(entry.id)

    def _opened(self, entry: Entry, model: Transformer) -> None:
        """A model was read from its files again: the text that it learned from may judge it again."""
        job = self._jobs.get(entry.id)
        if isinstance(job, RunJob):
            threading.Thread(target=job.read_text, args=(model,), daemon=True).start()

    # ---- what outlives the server ------------------------------------------------------------------------------------

    def _noted(self, job: K) -> K:
        """Note down what has to be known of a job after a restart."""
        self.data.keep("job", job.id, partial(self._write, job))
        return job

    def _write(self, job: Job) -> None:
        turn = self._turns.get(job.id)
        if self._jobs.get(job.id) is not job or turn is None:
            return
        state = "waiting" if job.state == "waiting" else "over" if job.settled else "working"
        noted = json.dumps(job.noted())
        values = (job.id, job.visitor, job.share, job.kind, job.name, job.number, state, *turn, job.tries, time.time())
        job.folder.mkdir(parents=True, exist_ok=True)
        write_file(job.folder / NOTES, lambda partial: partial.write_text(noted, encoding="utf-8"))
        with self.data.store.change() as db:
            db.execute(f"REPLACE INTO jobs VALUES ({', '.join('?' * len(values))})", values)
        if self._jobs.get(job.id) is not job:
            self.data.delete(job.id)  # it was forgotten meanwhile
        elif state == "over":
            job.tidy()

    def _stand_in_line_again(self) -> None:
        """What waited or worked when the server ended waits in its old order; what ended it often does not."""
        rows = self.data.rows("SELECT * FROM jobs WHERE state != 'over' ORDER BY round, turn")
        last = self.data.rows("SELECT max(round) AS round, max(turn) AS turn FROM jobs")
        self._clock = itertools.count((last[0]["turn"] or 0) + 1 if last else 0)
        self._round = min((row["round"] for row in rows), default=(last[0]["round"] or 0) if last else 0)
        for row in rows:
            job = self._found(row)
            if job is None:
                continue
            job.tries = row["tries"] + (row["state"] == "working")
            if job.tries < MOST_TRIES:
                self._stand_in_line(job)
                job.seen = None
            else:
                job.leave("The server stopped several times during this job, so it did not start it again.")
            self._noted(job)

    def _look_up(self, visitor: str | None) -> None:
        """Have the visitor's jobs here that were over when the server was started."""
        if not isinstance(visitor, str) or visitor in self._looked_up:
            return
        rows = self.data.rows("SELECT * FROM jobs WHERE visitor = ? AND state = 'over' ORDER BY turn", visitor)
        for row in rows:
            if row["id"] not in self._jobs:
                self._found(row)
        with self._lock:
            self._looked_up.add(visitor)
            numbers = self.data.rows(
                "SELECT kind, max(number) AS number FROM jobs WHERE visitor = ? GROUP BY 1", visitor
            )
            for row in numbers:
                known = self._names.get((visitor, row["kind"]), 0)
                self._names[visitor, row["kind"]] = max(known, row["number"])

    def _found(self, row: Mapping[str, Any]) -> Job | None:
        """The job of a row of the index; None where its notes cannot be read."""
        try:
            noted = json.loads((self.data.folder_of(row["id"]) / NOTES).read_text(encoding="utf-8"))
            job = _FOUND[row["kind"]](row, noted, self.limits, self.registry)
        except (OSError, ValueError, LookupError, TypeError):
            logger.exception("a job of before the restart cannot be found again")
            return None
        job.share, job.number = row["share"], row["number"]
        with self._lock:
            self._turns.setdefault(job.id, (row["round"], row["turn"]))
            return self._jobs.setdefault(job.id, job)

    def _clear_away(self, visitor: str) -> None:
        """Jobs that came to nothing are of interest until the visitor's next one, and must not pile up meanwhile, nor
        those that made no models."""
        over = [job for job in self._jobs.values() if not job.made and job.settled]
        for i, job in enumerate(over):
            if i < len(over) - FAILED_RUNS or (job.visitor == visitor and not job.has_result):
                self._forget(job)

    def _forget(self, job: Job) -> None:
        if job.settled and self._jobs.pop(job.id, None) is not None:
            self._turns.pop(job.id, None)
            for work_id in job.work_ids:
                if not self.registry.has(work_id, job.visitor):
                    self.data.delete(work_id)


def _network(job: Job) -> str:
    """The address from which a job was asked for, by a page or a program."""
    return job.share.rpartition(" ")[0]
