"""Jobs: training runs in threads of the server, each its visitor's own; pages come and go, and follow them.

A job's thread consumes the events of `run_training`; a page asks for a `RunView`, a consistent copy of what is known so
far. Nothing here knows what a page looks like.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import torch

from ..data import Ladder, Tokenizer
from ..links import RunCard
from ..model import ModelConfig
from ..storage import Checkpoint
from ..storage.snapshots import drop_after, find_snapshots, keep_snapshot
from ..training import Evaluated, Finished, History, Noticed, Snapshotted, Started, Stepped, TrainEvent
from .comparisons import ComparisonJob, ComparisonSpec
from .job import ACTIVE, Work
from .limits import LimitError, Limits
from .models import Registry, new_id
from .runs import Laddered, Learned, Predicted, Prepared, RunEvent, RunSpec, run_training

logger = logging.getLogger(__name__)

MOST_FAILED = 16
Runner = Callable[..., Iterator[RunEvent]]
K = TypeVar("K", bound=Work)


@dataclass(frozen=True)
class RunView:
    """What there is to show of a run, at one moment. Of a recorded run, only what its checkpoint remembers."""

    id: str
    name: str
    state: str
    """preparing, training, stopping, finished (done, stopped or out of time), failed; or recorded."""
    message: str = ""
    """The last thing worth saying, as a sentence."""
    history: History = field(default_factory=History)
    planned_steps: int | None = None
    latest: Stepped | None = None
    ladder: Ladder | None = None
    config: ModelConfig | None = None
    tokenizer: Tokenizer | None = None
    corpus: str = ""
    corpus_key: str = ""
    """Equal for runs whose losses may be compared: same text, same tokens."""
    prompt: str = ""
    before: torch.Tensor | None = None
    """(V,) next-token probabilities after the prompt, before training."""
    now: torch.Tensor | None = None
    """(V,) the same now."""
    settings: dict = field(default_factory=dict)
    """Flat settings, for tables of differences."""
    notices: tuple[str, ...] = ()
    device: str = ""
    can_resume: bool = False
    repeats: RunCard | None = None
    """The run of a link that this one was started to repeat."""
    lengthened: bool = False
    """Whether it was trained on after its last step, so that its settings alone do not lead to its losses."""
    version: int = 0
    """Grows whenever anything changed."""

    @property
    def time_left(self) -> float | None:
        """Seconds; None before the first step."""
        return self.latest.time_left if self.latest else None

    @property
    def active(self) -> bool:
        """Whether it is still going on."""
        return self.state in ACTIVE

    @property
    def learned(self) -> bool:
        """Whether there is a model to use."""
        return self.state in ("finished", "recorded")

    def asked(self, prompt: str, now: torch.Tensor, before: torch.Tensor | None = None) -> RunView:
        """The same with next-token probabilities (V,) after another prompt."""
        return replace(self, prompt=prompt, now=now, before=before)

    @classmethod
    def of_checkpoint(cls, model_id: str, checkpoint: Checkpoint) -> RunView:
        """The recorded run of a checkpoint."""
        about, history = checkpoint.about, checkpoint.history
        ladder = about.get("ladder")
        training = about.get("training") if isinstance(about.get("training"), dict) else {}
        return cls(
            id=model_id,
            name=checkpoint.name,
            state="recorded",
            message=(history.finished or {}).get("message", ""),
            history=history,
            planned_steps=training.get("steps") or history.last_step or None,
            ladder=Ladder(**ladder) if isinstance(ladder, dict) else None,
            config=checkpoint.config,
            tokenizer=checkpoint.tokenizer,
            corpus=str(about.get("corpus") or ""),
            prompt=str(about.get("prompt") or ""),
        )


class Job(Work):
    """One run: its thread, and all that it has brought forth so far."""

    def __init__(
        self,
        job_id: str,
        visitor: str,
        name: str,
        spec: RunSpec,
        limits: Limits,
        folder: Path,
        repeats: RunCard | None = None,
    ):
        super().__init__(job_id, visitor, name, folder)
        self.spec, self.limits = spec, limits
        self._history, self._ladder, self._latest = History(), None, None
        self._prepared: Prepared | None = None
        self._started: Started | None = None
        self._before: torch.Tensor | None = None
        self._now: torch.Tensor | None = None
        self._notices: list[str] = []
        self.repeats, self.lengthened = repeats, False
        self.checkpoint: Checkpoint | None = None

    @property
    def spec(self) -> RunSpec:
        """What was asked for."""
        return self._spec

    @spec.setter
    def spec(self, spec: RunSpec) -> None:
        self._spec, self.settings = spec, settings_of(spec)

    # ---- seen from a page --------------------------------------------------------------------------------------------

    @property
    def has_result(self) -> bool:
        """Whether its model is in the registry."""
        return self.checkpoint is not None

    @property
    def evaluations(self) -> int:
        """How many there have been."""
        return len(self._history.evaluations["step"])

    @property
    def corpus_key(self) -> str:
        """See `RunView.corpus_key`."""
        prepared = self._prepared
        return f"{prepared.corpus_sha256}/{prepared.tokenizer.name}/{prepared.config.vocab_size}" if prepared else ""

    def view(self) -> RunView:
        """A consistent copy of what is known."""
        with self._lock:
            history, prepared = self._history, self._prepared
            copied = History(
                {name: list(column) for name, column in history.steps.items()},
                {name: list(column) for name, column in history.evaluations.items()},
                list(history.samples), list(history.gradients), list(history.load), history.finished,
            )  # fmt: skip
            return RunView(
                id=self.id,
                name=self.name,
                state=self._state,
                message=self._message,
                history=copied,
                planned_steps=self.spec.training.steps,
                latest=self._latest,
                ladder=self._ladder,
                config=prepared.config if prepared else None,
                tokenizer=prepared.tokenizer if prepared else None,
                corpus=self.spec.source.title,
                corpus_key=self.corpus_key,
                prompt=self.spec.prompt,
                before=self._before,
                now=self._now,
                settings=self.settings,
                notices=tuple(self._notices),
                device=f"{self._started.device}, {self._started.precision}" if self._started else "",
                can_resume=self.can_resume,
                repeats=self.repeats,
                lengthened=self.lengthened,
                version=self._version,
            )

    @property
    def can_resume(self) -> bool:
        """Whether `Jobs.resume` would go on with it."""
        return self._state == "finished" and self.checkpoint is not None and self._history.last_step > 0

    # ---- its life ----------------------------------------------------------------------------------------------------

    def start(self, registry: Registry, runner: Runner, *, resume: bool = False, left: Callable[[], None]) -> None:
        """Begin, or go on, in a thread of its own."""

        def events(should_stop: Callable[[], bool]) -> Iterator[RunEvent]:
            return runner(self._kept_spec(), self.limits, folder=self.folder, resume=resume, should_stop=should_stop)

        def take(event: RunEvent) -> None:
            if isinstance(event, Learned):
                self._keep(event, registry, left)
            else:
                self._take(event)

        self.begin("Picking up where it stopped …" if resume else "Reading the text …", events, take)

    def _kept_spec(self) -> RunSpec:
        """The run, with as many of its moments kept as there is room for."""
        training = self.spec.training
        kept = training.snapshots or self.limits.snapshots(self.spec.model)
        return replace(self.spec, training=training.replace(snapshots=kept))

    def _take(self, event: RunEvent) -> None:
        if isinstance(event, Snapshotted) or (isinstance(event, Started) and event.step):
            self._keep_moment(event)
        with self._lock:
            if isinstance(event, Prepared):
                self._prepared, self._message = event, "Building the model …"
                if event.unknown:
                    parts = ", ".join(repr(part) for part in event.unknown)
                    self._notices = [f"The prompt has parts that the text lacks: {parts}. They are read as unknown."]
            elif isinstance(event, Predicted):
                if self._before is None and event.step == 0:
                    self._before = event.probabilities
                self._now = event.probabilities
            elif isinstance(event, Laddered):
                self._ladder = event.ladder
                if event.warning and event.warning not in self._notices:  # a resumed run finds it again
                    self._notices.append(event.warning)
                if self.checkpoint is not None:
                    self.checkpoint.about["ladder"] = event.ladder.to_dict()
            elif isinstance(event, TrainEvent):
                self._history.add(event)
                if isinstance(event, (Started, Evaluated)) and self._state == "preparing":
                    self._state, self._message = "training", ""
                if isinstance(event, Started):
                    self._started = event
                elif isinstance(event, Stepped):
                    self._latest = event
                elif isinstance(event, Noticed):
                    self._notices.append(event.message)
                elif isinstance(event, Finished):
                    self._message = event.message
            self._version += 1

    def _keep_moment(self, event: Snapshotted | Started) -> None:
        """Put the weights of this moment away; on starting again, forget those of a future that will not be."""
        try:
            if isinstance(event, Started):
                drop_after(self.folder, event.step)
            else:
                keep_snapshot(self.folder, event.step, event.state, tied=self._prepared.config.tie_embeddings)
        except OSError:
            logger.exception("a snapshot could not be kept")  # the run itself is worth more

    def _keep(self, event: Learned, registry: Registry, left: Callable[[], None]) -> None:
        """Put what was learned into the registry, then say so."""
        about = {
            "corpus": self.spec.source.title,
            "language": self._prepared.language,
            "text_sha256": self._prepared.corpus_sha256,
            "prompt": self.spec.prompt,
            "training": self.spec.training.to_dict(),
            "ladder": self._ladder.to_dict() if self._ladder else None,
        }
        snapshots = find_snapshots(self.folder, self._prepared.config)
        tokenizer, history = self._prepared.tokenizer, self.view().history
        self.checkpoint = Checkpoint(event.model, tokenizer, history, self.name, about, snapshots)
        registry.add(self.visitor, self.checkpoint, model_id=self.id, on_leaving=left)
        self._set(state="finished")


class Jobs:
    """All runs of the page, each reachable by its visitor alone."""

    def __init__(self, registry: Registry, limits: Limits, runner: Runner = run_training):
        self.registry, self.limits, self.runner = registry, limits, runner
        self._lock = threading.RLock()
        self._jobs: dict[str, Work] = {}
        self._names: dict[tuple[str, str], int] = {}  # visitor and kind → how many so far, for their names
        self._folders = tempfile.TemporaryDirectory(prefix="playground-runs-", ignore_cleanup_errors=True)

    def start(self, visitor: str, spec: RunSpec, *, repeats: RunCard | None = None) -> Job:
        """Begin a run for this visitor, perhaps to repeat one. Raises LimitError where there are too many already."""
        self.limits.check_training(spec.model, spec.training)
        with self._lock:
            job_id, number, folder = self._admit(visitor, Job.kind)
            training = spec.training.replace(max_seconds=self.limits.seconds)
            name = f"Run {number} · {spec.source.title}"
            job = Job(job_id, visitor, name, replace(spec, training=training), self.limits, folder, repeats)
            self._jobs[job_id] = job
            job.start(self.registry, self.runner, left=lambda: self._forget(job_id))
        return job

    def compare(self, visitor: str, spec: ComparisonSpec) -> ComparisonJob:
        """Begin a comparison for this visitor. Raises LimitError where there is too much going on already."""
        self.limits.check_comparison(spec.seeds)
        twins = spec.twins()
        for config in (twins.dense, twins.moe):
            self.limits.check_training(config, spec.training)
        with self._lock:
            job_id, number, folder = self._admit(visitor, ComparisonJob.kind)
            name = f"Comparison {number} · {spec.source.title}"
            job = ComparisonJob(job_id, visitor, name, spec, self.limits, folder)
            self._jobs[job_id] = job
            job.start(self.registry, left=lambda: self._forget(job_id))
        return job

    def _admit(self, visitor: str, kind: str) -> tuple[str, int, Path]:
        """Make room for one more: its id, its number for this visitor, its folder. Raises LimitError."""
        self._check_room(visitor)
        self._clear_failed(visitor)
        self._names[visitor, kind] = number = self._names.pop((visitor, kind), 0) + 1
        while len(self._names) > 10_000:
            self._names.pop(next(iter(self._names)))
        job_id = new_id()
        return job_id, number, Path(self._folders.name) / job_id

    def resume(self, visitor: str, run_id: str | None, *, more_steps: int = 0) -> Job:
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
            self.limits.check_training(job.spec.model, training)
            job.spec = replace(job.spec, training=training)
            job.lengthened = job.lengthened or done >= planned
            job.start(self.registry, self.runner, resume=True, left=lambda: self._forget(job.id))
        return job

    def stop(self, visitor: str, run_id: str | None = None, *, kind: type[K] = Job) -> K | None:
        """Stop this visitor's run (the latest active one unless named); None if nothing was running."""
        job = self.find(visitor, run_id, kind=kind) if run_id else self.active(visitor, kind=kind)
        if job is not None and job.active:
            job.stop()
            return job
        return None

    def find(self, visitor: str | None, run_id: str | None, *, kind: type[K] = Job) -> K | None:
        """This visitor's run of that id; None for anyone else's."""
        job = self._jobs.get(run_id) if isinstance(run_id, str) else None
        return job if isinstance(job, kind) and job.visitor == visitor else None

    def spec_of(self, checkpoint: Checkpoint) -> RunSpec | None:
        """What the run was asked for that made this very checkpoint; None where no run here did."""
        with self._lock:
            jobs = [job for job in self._jobs.values() if isinstance(job, Job)]
            return next((job.spec for job in jobs if job.checkpoint is checkpoint), None)

    def active(self, visitor: str | None, *, kind: type[K] = Job) -> K | None:
        """The visitor's run that is going on now."""
        return next((job for job in reversed(self.of(visitor, kind=kind)) if job.active), None)

    def of(self, visitor: str | None, *, kind: type[K] = Job) -> list[K]:
        """All of this visitor's runs that are still remembered, the oldest first."""
        with self._lock:
            return [job for job in self._jobs.values() if job.visitor == visitor and isinstance(job, kind)]

    def why_not(self, visitor: str) -> str | None:
        """Why no run can begin now, as a sentence; None if one can."""
        try:
            self._check_room(visitor)
        except LimitError as problem:
            return str(problem)
        return None

    def _check_room(self, visitor: str) -> None:
        with self._lock:
            mine = [job for job in self.of(visitor, kind=Work) if job.active]
            if len(mine) >= self.limits.jobs_per_visitor:
                raise LimitError(f"A {mine[-1].kind} of yours is going on: stop it first, or wait until it is done.")
            if sum(job.active or job.busy for job in self._jobs.values()) >= self.limits.jobs:
                raise LimitError(
                    f"All {self.limits.jobs} places for training are taken by other visitors: try again in a minute."
                )

    def _clear_failed(self, visitor: str) -> None:
        """Runs that failed are of interest until the next one begins, and must not pile up meanwhile."""
        failed = [job for job in self._jobs.values() if not job.has_result and not job.active]
        surplus = max(len(failed) - MOST_FAILED, 0)
        for i, job in enumerate(failed):
            if i < surplus or job.visitor == visitor:
                self._forget(job.id)

    def _forget(self, job_id: str) -> None:
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.active:
                return
            del self._jobs[job_id]
        shutil.rmtree(job.folder, ignore_errors=True)


def settings_of(spec: RunSpec) -> dict:
    """The settings of a run as one flat table, by the names used in configs."""
    unsaid = ("snapshots", "vocab_size", "sample_prompt", "max_seconds", "autosave_seconds", "device")
    table = {"text": spec.source.title, "tokenizer": spec.tokenizer, **spec.model.to_dict(), **spec.training.to_dict()}
    return {name: value for name, value in table.items() if name not in unsaid}
