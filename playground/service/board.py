"""Board: who may run now, who waits and for how long; the one place where visitors' jobs start, stop and continue.

There are `Limits.jobs` places; a job holds one as long as its thread works, even if it only saves results. Other jobs
wait in a queue (line.py). No address has more than `Limits.jobs_per_address` places or half the queue, and programs
have only one place. An open page keeps the places of its visitor's jobs. A closed one loses them after `AWAY_SECONDS`;
a job at work is then stopped only if others wait.

Jobs run in threads of the server, and only their own visitor can reach them; pages come and go. What is needed to find
a job again is noted in the data folder when it is requested, when it begins and when it is over. After a restart, jobs
that waited or worked are queued again in the old order, and continue once their visitor's page is back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ..links import RunCard
from ..model import Transformer
from ..storage import Checkpoint
from ..studies.sweep import Sweep
from .comparisons import ComparisonJob, ComparisonSpec
from .data_folder import new_id, tidy_name
from .job import Job
from .limits import FAILED_RUNS, LimitError, Limits
from .line import Line
from .models import Entry, Registry
from .notes import found, note
from .pace import Pace
from .run_job import RunJob, Runner
from .runs import RunSpec, Source, run_training
from .sweeps import SweepJob

K = TypeVar("K", bound=Job)

LOOKED_AT = 0.25
"""Seconds for which waiting pages need not check the queue again: jobs that join or end update it at once."""
MOST_TRIES = 3
"""After this many server stops without progress in between, a job no longer starts by itself."""


class Board:
    """All jobs of this server."""

    def __init__(self, registry: Registry, limits: Limits, runner: Runner = run_training):
        self.registry, self.limits, self.runner, self.pace = registry, limits, runner, Pace()
        self.data = registry.data
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._looked_up: set[str] = set()  # visitors whose jobs from before a restart were read again
        self.told: Callable[[RunJob], None] | None = None
        """Called for every run: see `RunJob.told`."""
        registry.on_leaving, registry.on_opening = self._left, self._opened
        self._began = time.monotonic()
        self._filled = 0.0  # when the queue was last updated or checked
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
        """Begin a run, perhaps to repeat another; without a name it is named after its text. Raises LimitError."""
        name = tidy_name(name) if name.strip() else ""
        self.limits.check_training(spec.model, spec.training)
        spec = replace(spec, training=spec.training.replace(max_seconds=self.limits.seconds))
        job = RunJob(new_id(), visitor, name, spec, self.limits, self.registry, repeats)
        job.by_program = by_program
        return self.begin(job, spec.source.title, share)

    def compare(self, visitor: str, spec: ComparisonSpec, *, share: str = "") -> ComparisonJob:
        """Begin or queue a comparison for this visitor. Raises LimitError."""
        spec.check(spec.matched(), self.limits)
        job = ComparisonJob(new_id(), visitor, "", spec, self.limits, self.registry)
        return self.begin(job, spec.source.title + ", no balance" * (spec.moe.balance == "none"), share)

    def begin(self, job: K, title: str, share: str = "", *, keep: int | None = None) -> K:
        """Queue a new job; one without a name is named after its number and `title`. Raises LimitError.

        With `keep`, only that number of the visitor's latest jobs of this kind stay, this one included.
        """
        self._look_up(job.visitor)  # reads files, so without the lock
        with self._lock:
            self._make_room(job.visitor, share, joins=job.gives_way)
            earlier = self.of(job.visitor, kind=type(job))
            again = bool(earlier) and earlier[-1].state == "failed"  # the number of a job without a result is free
            job.number = max(max((each.number for each in earlier), default=0) + (not again), 1)
            job.name, job.share = job.name or f"{job.kind.capitalize()} {job.number} · {title}", share
            self._clear_away(job.visitor)
            over = [each for each in earlier if each.settled]
            for each in over[: max(len(over) + 1 - keep, 0) if keep is not None else 0]:
                self._forget(each)
            self._queue(job)
        return self._noted(job)

    def sweep(self, visitor: str, spec: RunSpec, sweep: Sweep, *, share: str = "") -> SweepJob:
        """Begin or queue a sweep that replaces the visitor's last one. Raises ValueError or LimitError."""
        for value in sweep.values:
            self.limits.check_training(*sweep.configs(spec.model, spec.training, value))
        spec = replace(spec, training=spec.training.replace(sample_every=0, snapshots=0))
        job = SweepJob(new_id(), visitor, "", spec, sweep, self.limits, self.registry)
        return self.begin(job, spec.source.title, share, keep=1)

    def resume(self, visitor: str, run_id: str | None, *, more_steps: int = 0) -> RunJob:
        """Continue a stopped run, or train a finished one for `more_steps` longer."""
        self._look_up(visitor)
        with self._lock:
            job = self.find(visitor, run_id)
            if job is None or not job.can_resume:
                raise ValueError("There is no run to continue. Start one with Train.")
            if not job.settled:
                raise ValueError("This run is still saving its files. Try again in a moment.")
            self._make_room(visitor, job.share)
            job.go_on(more_steps)
            self._queue(job)
        return self._noted(job)

    def use_best(self, visitor: str, run_id: str | None, *, best: bool = True) -> RunJob:
        """Make a run's best weights its model, or else its last ones again. Raises ValueError if it lacks them."""
        job = self.find(visitor, run_id)
        if job is None:
            raise ValueError("Only the weights of your own runs can be used.")
        other = job.other(best=best)  # outside the lock: this reads and runs a model
        with self._lock:
            job.use(*other)
        self.registry.save(job.id)
        return self._noted(job)

    def stop(self, visitor: str, run_id: str | None = None, *, kind: type[K] = RunJob) -> K | None:
        """Stop this visitor's job (the latest active one unless named), queued or running; None if there is none."""
        job = self.find(visitor, run_id, kind=kind) if run_id else self.active(visitor, kind=kind)
        if job is not None and job.active:
            job.stop()
            self._fill()
            return job
        return None

    def rename(self, visitor: str, model_id: str, name: str) -> None:
        """Rename one of this visitor's models, and the run it came from. Raises ValueError."""
        name = self.registry.rename(model_id, visitor, name)
        for job in self.of(visitor, kind=Job):
            if model_id in job.models:
                job.renamed(model_id, name)
                self._noted(job)

    def delete(self, visitor: str, model_id: str) -> None:
        """Delete one of this visitor's models with its run and its files. Raises ValueError."""
        with self._lock:
            if any(job.active and model_id in job.models for job in self.of(visitor, kind=Job)):
                raise ValueError("This model is still being trained: stop it first.")
            self.registry.remove(model_id, visitor)

    def forget_visitor(self, visitor: str) -> None:
        """Delete everything kept for this visitor; running jobs are stopped and leave nothing behind."""
        for job in self.of(visitor, kind=Job):
            job.unwanted = True
            job.stop()
            with self._lock:
                self._forget(job)
        self.registry.forget_visitor(visitor)
        self.data.forget_lessons(visitor=visitor)
        self._fill()

    def keep_house(self) -> None:
        """From now on, remove every hour what nobody uses any more."""

        def hourly() -> None:
            while True:
                self.forget_unused()
                time.sleep(3600)

        if self.limits.keep_days is not None:
            threading.Thread(target=hourly, name="house", daemon=True).start()

    def forget_unused(self) -> None:
        """Remove what has been unused for longer than this kind of server keeps it."""
        if self.limits.keep_days is None:
            return
        since = time.time() - self.limits.keep_days * 24 * 3600
        self.registry.forget_unused(since)
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
        """This visitor's run with that id; None for anyone else's."""
        return next((job for job in self.of(visitor, kind=kind) if job.id == run_id), None)

    def source_of(self, checkpoint: Checkpoint) -> Source | None:
        """The source of the run or comparison that made this very checkpoint; None if none here did."""
        spec = self.spec_of(checkpoint)
        return None if spec is None else spec.source

    def spec_of(self, checkpoint: Checkpoint) -> RunSpec | ComparisonSpec | None:
        """The spec of the run or comparison that made this very checkpoint; None if none here did."""
        with self._lock:
            made = [(job, model_id) for job in self._jobs.values() for model_id in job.learned]
        return next((job.spec for job, model_id in made if self.registry.here(model_id) is checkpoint), None)

    def active(self, visitor: str | None, *, kind: type[K] = RunJob) -> K | None:
        """The visitor's job that is running or waiting."""
        return next((job for job in reversed(self.of(visitor, kind=kind)) if job.active), None)

    def of(self, visitor: str | None, *, kind: type[K] = RunJob) -> list[K]:
        """All of this visitor's jobs that are still remembered, the oldest first.

        A call shows that somebody is there, which keeps the places of waiting and running jobs.
        """
        self._look_up(visitor)
        with self._lock:
            mine = [job for job in self._jobs.values() if job.visitor == visitor]
            for job in mine:
                job.seen = time.monotonic()
            waits = any(job.state == "waiting" for job in mine)
            if waits and time.monotonic() - self._filled > LOOKED_AT:
                self._fill()
            return sorted((job for job in mine if isinstance(job, kind)), key=lambda job: job.turn)

    def failed(self, visitor: str | None, *, kind: type[K] = RunJob) -> K | None:
        """This visitor's latest job, if it gave no result and nothing new was requested since."""
        return next((job for job in self.of(visitor, kind=kind)[-1:] if job.state == "failed"), None)

    def dismiss(self, visitor: str | None, kind: type[Job] = RunJob) -> None:
        """Forget this visitor's failed jobs of this kind, and why they failed: something new was requested."""
        with self._lock:
            for job in [job for job in self.of(visitor, kind=kind) if job.state == "failed"]:
                self._forget(job)

    def news(self, visitor: str | None) -> tuple:
        """A value that differs whenever any of this visitor's jobs or models has changed."""
        jobs = tuple((job.id, job.version, job.settled) for job in self.of(visitor, kind=Job))
        models = self.registry.news(visitor)
        return jobs, models and (*models, self.data.problem)

    def counts(self) -> dict[str, int]:
        """The numbers of jobs that are running, waiting and remembered."""
        with self._lock:
            jobs = list(self._jobs.values())
        working, waiting = sum(job.busy for job in jobs), sum(job.state == "waiting" for job in jobs)
        return {"places": self.limits.jobs, "working": working, "waiting": waiting, "remembered": len(jobs)}

    def busy(self, visitor: str) -> str:
        """Why this visitor can begin nothing more now, in words; empty if nothing is in the way."""
        mine = [job for job in self.of(visitor, kind=Job) if job.active and not job.gives_way]
        if not mine:
            return ""
        return f"You already have a {mine[-1].kind} in progress{mine[-1].where}. Stop it, or wait until it is done."

    # ---- places and the line -----------------------------------------------------------------------------------------

    def _make_room(self, visitor: str, share: str, *, joins: bool = False) -> None:
        """Stop jobs that give way to this visitor's next one. Raises LimitError if it may not join the queue; one that
        `joins` waits for the visitor's other jobs."""
        if not joins and (busy := self.busy(visitor)):
            raise LimitError(busy)
        self._line.check(self._jobs.values(), share, self.limits.waiting)
        for job in self.of(visitor, kind=Job):
            if job.active and job.gives_way:
                job.stop()

    def _queue(self, job: Job) -> None:
        self._line.join(job)
        self._jobs[job.id] = job
        self._stand_in_line(job)
        self._fill()

    def _stand_in_line(self, job: Job) -> None:
        if isinstance(job, RunJob):
            further = {"parent": partial(self._parent, job)} if job.spec.parent else {}
            job.told, job.runner = self.told, partial(self.runner, **further) if further else self.runner
        job.queue(partial(self._ended, job), partial(self._noted, job))

    def _parent(self, job: RunJob) -> tuple[Checkpoint, Source | None]:
        """The model that a run trains further, and the text from which that model learned."""
        checkpoint = self.registry.get(job.spec.parent, job.visitor)
        return checkpoint, self.source_of(checkpoint)

    def _fill(self) -> None:
        """Start the queued jobs for which there is a place, and tell the others their positions."""
        with self._lock:
            self._filled = time.monotonic()
            jobs = list(self._jobs.values())
            self._line.give_up(jobs, self._began)
            if self.limits.kind != "local":
                self._line.make_room(jobs, self.limits.jobs)
            for job in self._line.next(jobs, self.limits):
                job.go()
            self._line.foretell(jobs, self.limits.jobs, self.pace.seconds)

    # ---- how jobs go -------------------------------------------------------------------------------------------------

    def _ended(self, job: Job) -> None:
        """Called when a job's thread has given up its place."""
        with self._lock:
            for model_id in job.learned if job.unwanted else ():
                self.registry.remove(model_id, job.visitor)
            if job.emptied or job.unwanted:
                self._forget(job)
            self._fill()
        self._noted(job)
        if isinstance(job, RunJob):
            self.pace.learn(job.view(), job.spec.training, job.tokens)

    def _left(self, entry: Entry) -> None:
        """Called when a model has left the registry: delete its files and, with its last model, the job."""
        with self._lock:
            job = next((job for job in self._jobs.values() if entry.id in job.models), None)
            if job is not None:
                job.let_go(entry.id)
                if job.emptied:
                    self._forget(job)
            self.data.delete(entry.id)

    def _opened(self, entry: Entry, model: Transformer) -> None:
        """Called when a model was read from its files: make its training text available for judging again."""
        job = self._jobs.get(entry.id)
        if isinstance(job, RunJob):
            threading.Thread(target=job.read_text, args=(model,), daemon=True).start()

    # ---- what outlives the server ------------------------------------------------------------------------------------

    def _noted(self, job: K) -> K:
        """Note what is needed to find a job again after a restart."""
        self.data.keep("job", job.id, partial(self._write, job))
        return job

    def _write(self, job: Job) -> None:
        if self._jobs.get(job.id) is not job:
            return
        note(job, self.data)
        if self._jobs.get(job.id) is not job:
            self.data.delete(job.id)  # the job was deleted meanwhile

    def _stand_in_line_again(self) -> None:
        """Queue the jobs that waited or worked when the server ended, in the old order, unless they often ended it."""
        rows = self.data.rows("SELECT * FROM jobs WHERE state != 'over' ORDER BY turn")
        last = self.data.rows("SELECT max(turn) AS turn FROM jobs")
        self._line = Line(last[0]["turn"] or 0 if last else 0)
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
        """Read this visitor's jobs that were already over when the server started."""
        if not isinstance(visitor, str) or visitor in self._looked_up:
            return
        rows = self.data.rows("SELECT * FROM jobs WHERE visitor = ? AND state = 'over' ORDER BY turn", visitor)
        for row in rows:
            if row["id"] not in self._jobs:
                self._found(row)
        with self._lock:
            self._looked_up.add(visitor)

    def _found(self, row: Mapping[str, Any]) -> Job | None:
        """The job for a row of the index; None if its notes cannot be read."""
        job = found(row, self.limits, self.registry)
        with self._lock:
            return job and self._jobs.setdefault(job.id, job)

    def _clear_away(self, visitor: str) -> None:
        """Remove jobs without a result: they matter only until the visitor's next one, and must not pile up."""
        over = [job for job in self._jobs.values() if not job.has_result and job.settled]
        for job in over[:-FAILED_RUNS] + [job for job in over if job.visitor == visitor]:
            self._forget(job)

    def _forget(self, job: Job) -> None:
        if job.settled and self._jobs.pop(job.id, None) is not None:
            for work_id in {job.id, *job.models}:
                if not self.registry.has(work_id, job.visitor):
                    self.data.delete(work_id)
