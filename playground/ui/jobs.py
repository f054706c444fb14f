"""Jobs: training runs in threads of the server, each its visitor's own; pages come and go, and follow them.

A job's thread consumes the events of `run_training`; a page asks for a `RunView`, a consistent copy of what is known so
far. Nothing here knows what a page looks like.
"""

from __future__ import annotations

import contextvars
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from ..data import Ladder, Tokenizer
from ..links import RunCard
from ..model import ModelConfig
from ..storage import Checkpoint
from ..training import Evaluated, Finished, History, Noticed, Started, Stepped, TrainEvent
from .limits import LimitError, Limits
from .registry import Registry, new_id
from .runs import Laddered, Learned, Predicted, Prepared, RunEvent, RunSpec, run_training

logger = logging.getLogger(__name__)

ACTIVE = ("preparing", "training", "stopping")
MOST_FAILED = 16
Runner = Callable[..., Iterator[RunEvent]]


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


class Job:
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
        self.id, self.visitor, self.name, self.spec, self.limits, self.folder = (
            job_id, visitor, name, spec, limits, folder
        )  # fmt: skip
        self.began = time.monotonic()
        self._lock = threading.Lock()
        self._stop = threading.Event()  # a new one per attempt: a thread whose own is not this any more was given up
        self._thread: threading.Thread | None = None
        self._state, self._message, self._version = "preparing", "Reading the text …", 0
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
    def state(self) -> str:
        """See `RunView.state`."""
        return self._state

    @property
    def active(self) -> bool:
        """Whether it is still going on."""
        return self._state in ACTIVE

    @property
    def version(self) -> int:
        """Grows with every change, so that nobody copies what they have seen already."""
        return self._version

    @property
    def evaluations(self) -> int:
        """How many there have been."""
        return len(self._history.evaluations["step"])

    @property
    def corpus_key(self) -> str:
        """See `RunView.corpus_key`."""
        prepared = self._prepared
        return f"{prepared.corpus_sha256}/{prepared.tokenizer.name}/{prepared.config.vocab_size}" if prepared else ""

    @property
    def busy(self) -> bool:
        """Whether its thread still works, be it only to put things away."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def settled(self) -> bool:
        """Whether nothing more will change."""
        return not self.active and not self.busy

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
        self._stop = threading.Event()
        self._set(state="preparing", message="Picking up where it stopped …" if resume else "Reading the text …")
        # in the context of whoever asked: on ZeroGPU their request says whose quota a run may use
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._run, registry, runner, resume, left),
            name=f"run-{self.id[:6]}",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end after the current step; what was learned is kept."""
        with self._lock:
            self._stop.set()
            if self._state == "preparing":
                self._stop = threading.Event()
                nothing = "Stopped before training began: there is nothing to keep."
                self._state, self._message = ("finished", "Stopped.") if self.checkpoint else ("failed", nothing)
            elif self._state == "training":
                self._state, self._message = "stopping", "Stopping after this step …"
            self._version += 1

    def _run(self, registry: Registry, runner: Runner, resume: bool, left: Callable[[], None]) -> None:
        stop = self._stop
        try:
            for event in runner(self.spec, self.limits, folder=self.folder, resume=resume, should_stop=stop.is_set):
                if self._stop is not stop:
                    return  # stopped while preparing: nobody waits for this any more
                if isinstance(event, Learned):
                    self._keep(event, registry, left)
                else:
                    self._take(event)
        except ValueError as problem:
            self._fail(stop, str(problem))
        except Exception:
            logger.exception("a training run failed")
            self._fail(stop, "Something went wrong on our side and the run cannot go on. Try again.")

    def _take(self, event: RunEvent) -> None:
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
        self.checkpoint = Checkpoint(event.model, self._prepared.tokenizer, self.view().history, self.name, about)
        registry.add(self.visitor, self.checkpoint, model_id=self.id, on_leaving=left)
        self._set(state="finished")

    def _fail(self, stop: threading.Event, message: str) -> None:
        if stop is self._stop and self.active:  # not a thread that was given up, nor the ladder of a finished run
            self._set(state="finished" if self.checkpoint else "failed", message=message)

    def _set(self, *, state: str, message: str | None = None) -> None:
        with self._lock:
            self._state = state
            if message is not None:
                self._message = message
            self._version += 1


class Jobs:
    """All runs of the page, each reachable by its visitor alone."""

    def __init__(self, registry: Registry, limits: Limits, runner: Runner = run_training):
        self.registry, self.limits, self.runner = registry, limits, runner
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._names: dict[str, int] = {}  # visitor → runs so far, for their names
        self._folders = tempfile.TemporaryDirectory(prefix="playground-runs-", ignore_cleanup_errors=True)

    def start(self, visitor: str, spec: RunSpec, *, repeats: RunCard | None = None) -> Job:
        """Begin a run for this visitor, perhaps to repeat one. Raises LimitError where there are too many already."""
        self.limits.check_training(spec.model, spec.training)
        with self._lock:
            self._check_room(visitor)
            self._clear_failed(visitor)
            self._names[visitor] = number = self._names.pop(visitor, 0) + 1
            while len(self._names) > 10_000:
                self._names.pop(next(iter(self._names)))
            job_id = new_id()
            training = spec.training.replace(max_seconds=self.limits.seconds)
            folder = Path(self._folders.name) / job_id
            name = f"Run {number} · {spec.source.title}"
            job = Job(job_id, visitor, name, replace(spec, training=training), self.limits, folder, repeats)
            self._jobs[job_id] = job
            job.start(self.registry, self.runner, left=lambda: self._forget(job_id))
        return job

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

    def stop(self, visitor: str, run_id: str | None = None) -> Job | None:
        """Stop this visitor's run (the latest active one unless named); None if nothing was running."""
        job = self.find(visitor, run_id) if run_id else self.active(visitor)
        if job is not None and job.active:
            job.stop()
            return job
        return None

    def find(self, visitor: str | None, run_id: str | None) -> Job | None:
        """This visitor's run of that id; None for anyone else's."""
        job = self._jobs.get(run_id) if isinstance(run_id, str) else None
        return job if job is not None and job.visitor == visitor else None

    def active(self, visitor: str | None) -> Job | None:
        """The visitor's run that is going on now."""
        return next((job for job in reversed(self._of(visitor)) if job.active), None)

    def of(self, visitor: str | None) -> list[Job]:
        """All of this visitor's runs that are still remembered, the oldest first."""
        return self._of(visitor)

    def why_not(self, visitor: str) -> str | None:
        """Why no run can begin now, as a sentence; None if one can."""
        try:
            self._check_room(visitor)
        except LimitError as problem:
            return str(problem)
        return None

    def _check_room(self, visitor: str) -> None:
        with self._lock:
            mine = sum(job.active for job in self._of(visitor))
            if mine >= self.limits.jobs_per_visitor:
                raise LimitError("A run of yours is going on: stop it first, or wait until it is done.")
            if sum(job.active or job.busy for job in self._jobs.values()) >= self.limits.jobs:
                raise LimitError(
                    f"All {self.limits.jobs} places for training are taken by other visitors: try again in a minute."
                )

    def _of(self, visitor: str | None) -> list[Job]:
        with self._lock:
            return [job for job in self._jobs.values() if job.visitor == visitor]

    def _clear_failed(self, visitor: str) -> None:
        """Runs that failed are of interest until the next one begins, and must not pile up meanwhile."""
        failed = [job for job in self._jobs.values() if job.checkpoint is None and not job.active]
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
    unsaid = ("vocab_size", "sample_prompt", "max_seconds", "autosave_seconds", "device")
    table = {"text": spec.source.title, "tokenizer": spec.tokenizer, **spec.model.to_dict(), **spec.training.to_dict()}
    return {name: value for name, value in table.items() if name not in unsaid}
