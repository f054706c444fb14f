"""Board: who may run now, who waits and for how long; the one place where visitors' jobs start, stop and go on.

There are `Limits.jobs` places; a job holds one as long as its thread works, be it only to put things away. Whoever asks
for more joins a line. It is fair: a visitor's second job stands behind everybody's first, of equals whoever came first
begins first, and newcomers never pass those of an earlier round. A page that looks at its jobs keeps their place in the
line; one that stays away loses it after `AWAY_SECONDS`. Jobs are in threads of the server, each reachable by its
visitor alone; pages come and go, and follow them. Programs have no more than a few of the places. Nothing here knows
what a page looks like.
"""

from __future__ import annotations

import heapq
import itertools
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..links import RunCard
from ..storage import Checkpoint
from .balance import BalanceJob, planned
from .comparisons import ComparisonJob, ComparisonSpec
from .job import Job
from .limits import AWAY_SECONDS, FAILED_RUNS, TRAININGS_WITHOUT_PAGE, LimitError, Limits
from .models import Registry, new_id
from .pace import Pace
from .run_job import RunJob, Runner
from .runs import RunSpec, Source, run_training

K = TypeVar("K", bound=Job)


class Board:
    """All jobs of the house."""

    def __init__(self, registry: Registry, limits: Limits, runner: Runner = run_training):
        self.registry, self.limits, self.runner, self.pace = registry, limits, runner, Pace()
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._turns: dict[str, tuple[int, int]] = {}  # id → round, and when it was asked for: who is less begins first
        self._round, self._clock = 0, itertools.count()
        self._names: dict[tuple[str, str], int] = {}  # visitor and kind → how many so far, for their names
        self.told: Callable[[RunJob], None] | None = None
        """Hears of every run: see `RunJob.told`."""
        self._folders = tempfile.TemporaryDirectory(prefix="playground-runs-", ignore_cleanup_errors=True)

    # ---- what visitors ask for ---------------------------------------------------------------------------------------

    def start(self, visitor: str, spec: RunSpec, *, repeats: RunCard | None = None, by_program: bool = False) -> RunJob:
        """Begin a run for this visitor, perhaps to repeat one, or put it in line. Raises LimitError."""
        self.limits.check_training(spec.model, spec.training)
        with self._lock:
            job_id, number, folder = self._admit(visitor, RunJob)
            training = spec.training.replace(max_seconds=self.limits.seconds)
            name = f"Run {number} · {spec.source.title}"
            job = RunJob(job_id, visitor, name, replace(spec, training=training), self.limits, folder, repeats)
            job.by_program, job.told = by_program, self.told
            self._queue(job, partial(job.start, self.registry, self.runner, left=partial(self._left, job)))
        return job

    def compare(self, visitor: str, spec: ComparisonSpec) -> ComparisonJob:
        """Begin a comparison for this visitor, or put it in line. Raises LimitError."""
        self.limits.check_comparison(spec.seeds)
        matched = spec.matched()
        for config in (matched.dense, matched.moe):
            self.limits.check_training(config, spec.training)
        with self._lock:
            job_id, number, folder = self._admit(visitor, ComparisonJob)
            name = f"Comparison {number} · {spec.source.title}"
            job = ComparisonJob(job_id, visitor, name, spec, self.limits, folder)
            self._queue(job, partial(job.start, self.registry, left=partial(self._left, job)))
        return job

    def balance(self, visitor: str, experts_per_token: Any, steps: Any) -> BalanceJob:
        """Begin the three balance runs for this visitor, or put them in line. Raises LimitError or ValueError."""
        plan = planned(experts_per_token, steps)
        self.limits.check_training(*plan[1:])
        with self._lock:
            job_id, number, folder = self._admit(visitor, BalanceJob)
            job = BalanceJob(job_id, visitor, f"Balance run {number}", plan, self.limits, folder)
            self._queue(job, job.start)
        return job

    def resume(self, visitor: str, run_id: str | None, *, more_steps: int = 0) -> RunJob:
        """Go on with a stopped run, or train a finished one for `more_steps` longer."""
        with self._lock:
            job = self.find(visitor, run_id)
            if job is None or not job.can_resume:
                raise ValueError("There is no run to go on with: start one with Train.")
            if not job.settled:
                raise ValueError("This run is still putting its things away: try again in a moment.")
            self._check_room(visitor)
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
            left = partial(self._left, job)
            self._queue(job, partial(job.start, self.registry, self.runner, resume=True, left=left))
        return job

    def use_best(self, visitor: str, run_id: str | None) -> RunJob:
        """Let a run's best weights be its model from now on. Raises ValueError where there are no better ones."""
        job = self.find(visitor, run_id)
        if job is None:
            raise ValueError("Only the best weights of your own runs can be used.")
        best = job.best()  # reads and tries a model: nobody else waits for that
        with self._lock:
            job.use(best, self.registry, partial(self._left, job))
        return job

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
        with self._lock:
            checkpoint = self.registry.rename(model_id, visitor, name)
            for job in self.of(visitor, kind=Job):
                if job.keeps(model_id):
                    job.renamed(model_id, checkpoint)

    def delete(self, visitor: str, model_id: str) -> None:
        """Let go of one of this visitor's models, of its run and of its files. Raises ValueError."""
        with self._lock:
            if any(job.active and job.keeps(model_id) for job in self.of(visitor, kind=Job)):
                raise ValueError("This model is still being trained: stop it first.")
            self.registry.remove(model_id, visitor)

    # ---- what there is -----------------------------------------------------------------------------------------------

    def find(self, visitor: str | None, run_id: str | None, *, kind: type[K] = RunJob) -> K | None:
        """This visitor's run of that id; None for anyone else's."""
        return next((job for job in self.of(visitor, kind=kind) if job.id == run_id), None)

    def source_of(self, checkpoint: Checkpoint) -> Source | None:
        """What the run or comparison learned from that made this very checkpoint; None where none here did."""
        with self._lock:
            jobs = list(self._jobs.values())
        return next((job.spec.source for job in jobs if any(made is checkpoint for made in job.made)), None)

    def active(self, visitor: str | None, *, kind: type[K] = RunJob) -> K | None:
        """The visitor's job that is going on now, or waits to."""
        return next((job for job in reversed(self.of(visitor, kind=kind)) if job.active), None)

    def of(self, visitor: str | None, *, kind: type[K] = RunJob) -> list[K]:
        """All of this visitor's jobs that are still remembered, the oldest first.

        Asking is the sign that somebody is there, which keeps the place of those that wait.
        """
        with self._lock:
            mine = [job for job in self._jobs.values() if job.visitor == visitor]
            waiting = [job for job in mine if job.state == "waiting"]
            for job in waiting:
                job.seen = time.monotonic()
            if waiting:
                self._fill()
            return [job for job in mine if isinstance(job, kind)]

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
        return jobs, self.registry.news(visitor)

    def counts(self) -> dict[str, int]:
        """How many jobs work, wait, and are remembered."""
        with self._lock:
            jobs = list(self._jobs.values())
        return {
            "places": self.limits.jobs,
            "working": sum(job.busy for job in jobs),
            "waiting": sum(job.state == "waiting" for job in jobs),
            "remembered": len(jobs),
        }

    # ---- places and the line -----------------------------------------------------------------------------------------

    def _admit(self, visitor: str, kind: type[Job]) -> tuple[str, int, Path]:
        """Make room for one more: its id, its number for this visitor, its folder. Raises LimitError."""
        self._check_room(visitor)
        again = self.failed(visitor, kind=kind) is not None  # the number of one that came to nothing is free
        self._clear_away(visitor, kind)
        self._names[visitor, kind.kind] = number = max(self._names.pop((visitor, kind.kind), 0) + (not again), 1)
        while len(self._names) > 10_000:
            self._names.pop(next(iter(self._names)))
        job_id = new_id()
        return job_id, number, Path(self._folders.name) / job_id

    def _check_room(self, visitor: str) -> None:
        mine = [job for job in self.of(visitor, kind=Job) if job.active]
        if len(mine) >= self.limits.jobs_per_visitor:
            raise LimitError(f"A {mine[-1].kind} of yours is going on: stop it first, or wait until it is done.")
        waiting = sum(job.state == "waiting" for job in self._jobs.values())
        if waiting >= self.limits.waiting:
            raise LimitError(
                f"All {self.limits.jobs} places for training are taken, and {waiting} wait in line: "
                "try again in a few minutes."
            )

    def _queue(self, job: Job, start: Callable[[], None]) -> None:
        # a visitor's rounds follow each other; a newcomer joins the one that is going on (start-time fair queueing)
        others = [other for other in self.of(job.visitor, kind=Job) if other is not job and not other.settled]
        rounds = [self._turns[other.id][0] + 1 for other in others]
        self._turns[job.id] = max([self._round, *rounds]), next(self._clock)
        self._jobs[job.id] = job
        job.queue(start, partial(self._ended, job))
        self._fill()

    def _line(self) -> list[Job]:
        """Those who wait, in the order in which they will begin."""
        waiting = [job for job in self._jobs.values() if job.state == "waiting"]
        return sorted(waiting, key=lambda job: self._turns[job.id])

    def _fill(self) -> None:
        """Let those in line begin for whom there is a place, and tell the others where they stand."""
        with self._lock:
            now = time.monotonic()
            for job in self._line():
                if now - job.seen > AWAY_SECONDS:
                    job.leave("The page was away too long, and the place in the line was given up: start again.")
            for job in self._line():
                at_work = [other for other in self._jobs.values() if other.busy]
                # also those that were stopped and still work: pressing Train and Stop in turns gains no second place
                mine = sum(other.visitor == job.visitor for other in at_work)
                programs = min(TRAININGS_WITHOUT_PAGE, max(self.limits.jobs - 1, 1))
                if job.by_program and sum(other.by_program for other in at_work) >= programs:
                    continue
                if len(at_work) < self.limits.jobs and mine < self.limits.jobs_per_visitor:
                    self._round = max(self._round, self._turns[job.id][0])
                    job.go()
            free = [self._left_of(job, now) for job in self._jobs.values() if job.busy]
            free = [0.0] * (self.limits.jobs - len(free)) + free
            heapq.heapify(free)
            for place, job in enumerate(self._line(), 1):
                wait = heapq.heappop(free)
                heapq.heappush(free, wait + job.expected(self.pace.seconds))
                job.stands(place, wait)

    def _left_of(self, job: Job, now: float) -> float:
        if not job.active or job.state == "stopping":
            return 1.0
        left = job.time_left
        return left if left is not None else max(job.expected(self.pace.seconds) - (now - job.began), 1.0)

    # ---- how jobs go -------------------------------------------------------------------------------------------------

    def _ended(self, job: Job) -> None:
        """A job's thread has let go of its place."""
        with self._lock:
            if job.emptied:
                self._forget(job)
            self._fill()
        if isinstance(job, RunJob):
            self.pace.learn(job.view(), job.spec.training, job.tokens)

    def _left(self, job: Job, model_id: str) -> None:
        """One of a job's models has left the registry: its files go along, and with the last one the job."""
        with self._lock:
            job.let_go(model_id)
            if job.emptied:
                self._forget(job)

    def _clear_away(self, visitor: str, kind: type[Job]) -> None:
        """Jobs that no model keeps are of interest until the visitor's next one, and must not pile up meanwhile."""
        failed = [job for job in self._jobs.values() if not job.has_result]
        curves = [job for job in self._jobs.values() if not job.keeps_models and job.has_result]
        for jobs, most in ((failed, FAILED_RUNS), (curves, self.limits.models)):
            over = [job for job in jobs if job.settled]
            surplus = len(over) - most
            for i, job in enumerate(over):
                if i < surplus or (job.visitor == visitor and (jobs is failed or isinstance(job, kind))):
                    self._forget(job)

    def _forget(self, job: Job) -> None:
        if job.settled and self._jobs.pop(job.id, None) is not None:
            self._turns.pop(job.id, None)
            shutil.rmtree(job.folder, ignore_errors=True)
