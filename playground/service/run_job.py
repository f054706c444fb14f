"""A training run as a visitor's job: it consumes the events of `run_training`, and pages ask it for a `RunView`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ..links import RunCard
from ..model import Transformer
from ..storage import Checkpoint
from ..storage.snapshots import drop_after, drop_best, find_snapshots, keep_best, keep_snapshot
from ..training import (
    BestKept,
    Evaluated,
    Finished,
    History,
    Noticed,
    SkillMeasured,
    Snapshotted,
    Started,
    Stepped,
    TrainConfig,
    TrainEvent,
)
from ..training.states import LITTLE
from ..words.training import message
from . import verdicts
from .job import Job
from .limits import Limits
from .models import Registry
from .runs import Laddered, Learned, Predicted, Prepared, RunEvent, RunSpec, predict
from .views import RunView, sample_temperature

logger = logging.getLogger(__name__)

Runner = Callable[..., Iterator[RunEvent]]


@dataclass(frozen=True)
class Best:
    """The best weights of a finished run, ready to be its model."""

    of: Checkpoint
    """The model of which they are the better version."""
    checkpoint: Checkpoint
    step: int
    probabilities: torch.Tensor | None
    """(V,) what they predict after the run's prompt; None without a prompt."""


class RunJob(Job):
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
        self._history, self._baselines, self._latest, self._learned = History(), None, None, None
        self._prepared: Prepared | None = None
        self._started: Started | None = None
        self._before: torch.Tensor | None = None
        self._now: torch.Tensor | None = None
        self._notices: list[str] = []
        self.repeats = repeats
        self.told: Callable[[RunJob], None] | None = None
        """Called with it whenever it was measured, and when it is over; for those who remember runs elsewhere."""
        self._planned_first = spec.training.steps
        self._before_resume: tuple[int, RunSpec] | None = None  # the step that it had come to, and its spec until then
        self.checkpoint: Checkpoint | None = None
        self.used: int | None = None
        """The step whose weights are the model, where that is not the last."""
        self._of_used: torch.Tensor | None = None  # what these predict after the prompt

    @property
    def spec(self) -> RunSpec:
        """What was asked for."""
        return self._spec

    @spec.setter
    def spec(self, spec: RunSpec) -> None:
        self._spec, self.settings = spec, settings_of(spec)

    @property
    def lengthened(self) -> bool:
        """See `RunView.lengthened`."""
        return self._history.last_step > self._planned_first

    def go_on(self, training: TrainConfig) -> None:
        """It is to be trained on, with these settings, once its turn comes."""
        self._before_resume = self._history.last_step, self.spec
        self.spec = replace(self.spec, training=training)

    def attempt_over(self) -> None:
        """See `Job.attempt_over`: a run that made no further step is what it was."""
        step, spec = self._before_resume or (None, self.spec)
        self.spec = spec if step == self._history.last_step else self.spec

    # ---- seen from a page --------------------------------------------------------------------------------------------

    @property
    def made(self) -> list[Checkpoint]:
        """See `Job.made`."""
        return [] if self.checkpoint is None else [self.checkpoint]

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

    @property
    def tokens(self) -> int:
        """How many its text has; 0 before it was read."""
        return self._prepared.train_tokens + self._prepared.val_tokens if self._prepared else 0

    def view(self) -> RunView:
        """A consistent copy of what is known."""
        with self._lock:
            prepared = self._prepared
            used = None if self.active else self.used  # a run that goes on has left those weights behind
            return RunView(
                **self.seen_as(),
                history=self._history.copied(),
                planned_steps=self.spec.training.steps,
                latest=self._latest,
                baselines=self._baselines,
                config=prepared.config if prepared else None,
                tokenizer=prepared.tokenizer if prepared else None,
                corpus=self.spec.source.title,
                corpus_key=self.corpus_key,
                prompt=self.spec.prompt,
                sample_temperature=sample_temperature(self._history, self.spec.training.sample_temperature),
                language=(prepared.language or "") if prepared else "",
                learned_text=self._learned,
                before=self._before,
                now=self._now if used is None else self._of_used,
                settings=self.settings,
                notices=tuple(self._notices),
                device=f"{self._started.device}, {self._started.precision}" if self._started else "",
                can_resume=self.can_resume,
                repeats=self.repeats,
                lengthened=self.lengthened,
                used=used,
                kept=self._better_step,
            )

    @property
    def _better_step(self) -> int | None:
        """The step whose kept weights predict the validation text noticeably better than the last ones."""
        best, last = self.checkpoint and self.checkpoint.best, self._history.val_loss
        return best[0] if best and (last is None or not last - best[1] <= LITTLE) else None

    @property
    def can_resume(self) -> bool:
        """Whether `Board.resume` would go on with it."""
        return self._state == "finished" and self.checkpoint is not None and self._history.last_step > 0

    @property
    def time_left(self) -> float | None:
        """See `Job.time_left`."""
        return self._latest.time_left if self._latest and self._state == "training" else None

    def expected(self, seconds: Callable[..., float]) -> float:
        """See `Job.expected`."""
        training = self.spec.training
        steps = max(training.steps - self._history.last_step, 1)
        return min(seconds(self.spec.model, training.replace(steps=steps), self.tokens), self.limits.seconds)

    def let_go(self, model_id: str) -> None:
        """See `Job.let_go`."""
        self.checkpoint, self.emptied = None, True

    def renamed(self, model_id: str, checkpoint: Checkpoint) -> None:
        """See `Job.renamed`: a run is called what its model is."""
        with self._lock:
            self.checkpoint, self.name = checkpoint, checkpoint.name
            self._version += 1

    # ---- its life ----------------------------------------------------------------------------------------------------

    def start(self, registry: Registry, runner: Runner, *, resume: bool = False, left: Callable[[str], None]) -> None:
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
        if isinstance(event, (Snapshotted, BestKept)) or (isinstance(event, Started) and event.step):
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
                self._baselines, self._learned = event.baselines, event.learned
                if event.warning and event.warning not in self._notices:  # a resumed run finds it again
                    self._notices.append(event.warning)
                if self.checkpoint is not None:
                    self.checkpoint.about["ladder"] = event.baselines.to_dict()
                    self._remember_text(self.checkpoint.model)
            elif isinstance(event, TrainEvent):
                self._history.add(event)
                if isinstance(event, SkillMeasured) and self._state == "finished" and self.checkpoint is not None:
                    self.checkpoint.history.add(event)  # the last one comes after the model
                if isinstance(event, (Started, Evaluated)) and self._state == "preparing":
                    self._state, self._message = "training", ""
                if isinstance(event, Started):
                    self._started = event
                elif isinstance(event, Stepped):
                    self._latest = event
                elif isinstance(event, Noticed):
                    self._notices.append(message(event))
                elif isinstance(event, Finished):
                    self._message = message(event)
            self._version += 1
        if self.told is not None and isinstance(event, (Evaluated, Laddered)):
            self.told(self)

    def _keep_moment(self, event: Snapshotted | BestKept | Started) -> None:
        """Put the weights of this moment away; on starting again, forget those of a future that will not be."""
        try:
            if isinstance(event, Started):
                drop_after(self.folder, event.step)
            elif isinstance(event, BestKept):
                keep_best(self.folder, event.best_step, event.state, tied=self._prepared.config.tie_embeddings)
            else:
                keep_snapshot(self.folder, event.step, event.state, tied=self._prepared.config.tie_embeddings)
        except OSError:
            logger.exception("a snapshot could not be kept")  # the run itself is worth more

    def _keep(self, event: Learned, registry: Registry, left: Callable[[str], None]) -> None:
        """Put what was learned into the registry, then say so."""
        self.attempt_over()
        about = {
            "corpus": self.spec.source.title,
            "language": self._prepared.language,
            "text_sha256": self._prepared.corpus_sha256,
            "prompt": self.spec.prompt,
            "training": self.spec.training.to_dict(),
            "ladder": self._baselines.to_dict() if self._baselines else None,
        }
        tokenizer, history = self._prepared.tokenizer, self.view().history
        if history.best and history.best[0] == history.last_step:
            drop_best(self.folder)
        snapshots = find_snapshots(self.folder, self._prepared.config)
        self.emptied, self.used = False, None
        self._remember_text(event.model)
        self.checkpoint = Checkpoint(event.model, tokenizer, history, self.name, about, snapshots)
        registry.add(self.visitor, self.checkpoint, model_id=self.id, on_leaving=lambda: left(self.id))
        self._set(state="finished")
        if self.told is not None:
            self.told(self)

    def best(self) -> Best:
        """The kept weights of the lowest validation loss as a model. Raises ValueError where nothing better is kept."""
        last = self.checkpoint if self.settled else None
        if last is None or last.best is None:
            raise ValueError("No better weights than the last are kept of this run.")
        checkpoint, asked = last.at("best"), list(self._prepared.asked)
        return Best(last, checkpoint, last.best[0], predict(checkpoint.model, asked) if asked else None)

    def use(self, best: Best, registry: Registry, left: Callable[[str], None]) -> None:
        """Let these weights be the model from now on; its record ends with them.

        The run itself stays what it was: it goes on from its last step. Raises ValueError where it has changed since.
        """
        if self.checkpoint is not best.of or not self.settled:
            raise ValueError("This run has changed in the meantime: look at it again.")
        with self._lock:
            self.checkpoint, self.used, self._of_used = best.checkpoint, best.step, best.probabilities
            self._version += 1
        self._remember_text(best.checkpoint.model)
        registry.add(self.visitor, best.checkpoint, model_id=self.id, on_leaving=lambda: left(self.id))

    def _remember_text(self, model: Transformer) -> None:
        if self._learned is not None:
            verdicts.remember(model, self._learned)


def settings_of(spec: RunSpec) -> dict:
    """The settings of a run as one flat table, by the names used in configs."""
    unsaid = ("snapshots", "vocab_size", "sample_prompt", "max_seconds", "autosave_seconds", "device")
    table = {"text": spec.source.title, "tokenizer": spec.tokenizer, **spec.model.to_dict(), **spec.training.to_dict()}
    learned = {"vocab_size": spec.vocab_size} if spec.vocab_size else {}
    return {name: value for name, value in table.items() if name not in unsaid} | learned
