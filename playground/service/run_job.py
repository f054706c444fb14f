"""A training run as a visitor's job: it consumes the events of `run_training`, and pages ask it for a `RunView`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from pydantic import TypeAdapter

from ..links import RunCard
from ..model import Transformer
from ..storage import Checkpoint
from ..storage.checkpoint import best_kept, record_of
from ..storage.snapshots import drop_after, drop_best, find_snapshots, keep_best, keep_snapshot
from ..training import (
    BestKept,
    Evaluated,
    Finished,
    History,
    Noticed,
    Saved,
    SkillMeasured,
    Snapshotted,
    Started,
    Stepped,
    TrainEvent,
)
from ..training.autosave import FILE
from ..training.events import NOT_SAVED
from ..training.resume import SavedRun
from ..training.states import is_behind
from ..words.training import message
from . import verdicts
from .limits import Limits
from .models import Registry
from .runs import (
    Laddered,
    Learned,
    Measuring,
    Predicted,
    Prepared,
    RunEvent,
    RunSpec,
    Tuned,
    corpus_for,
    predict,
    run_training,
)
from .training_job import TrainingJob
from .views import RunView, sample_temperature

logger = logging.getLogger(__name__)

Runner = Callable[..., Iterator[RunEvent]]


class RunJob(TrainingJob):
    """One run: its thread and its results so far."""

    def __init__(
        self,
        job_id: str,
        visitor: str,
        name: str,
        spec: RunSpec,
        limits: Limits,
        registry: Registry,
        repeats: RunCard | None = None,
    ):
        super().__init__(job_id, visitor, name, spec, limits, registry)
        self.models = {job_id: False}
        self._history, self._latest, self._text = History(), None, None
        self._before: torch.Tensor | None = None
        self._now: torch.Tensor | None = None
        self._tuned: dict[str, Any] = {}  # see `runs.Tuned`
        self.repeats = repeats
        self.runner: Runner = run_training
        self.told: Callable[[RunJob], None] | None = None
        """Called with the job whenever it was measured, and when it is over, for code that remembers runs elsewhere."""
        self.planned_first = spec.training.steps
        self._before_resume: tuple[int, RunSpec] | None = None  # the step reached before, and the spec until then
        self._unsaved = False  # whether its last steps are missing from its files, so that it cannot continue
        self._better: tuple[int, float] | None = None  # see `Checkpoint.best`
        self.used: int | None = None
        """The step whose weights are the model, if it is not the last."""
        self._of_used: torch.Tensor | None = None  # what those weights predict after the prompt

    @property
    def lengthened(self) -> bool:
        return self._history.last_step > self.planned_first

    def go_on(self, more_steps: int) -> None:
        """Prepare to be trained further: to the last planned step, or `more_steps` beyond it.

        Raises LimitError.
        """
        done, planned, seconds = self._history.last_step, self.spec.training.steps, self._history.steps["seconds"]
        steps = planned if done < planned else done + max(more_steps, 1)
        most = self.limits.seconds + (seconds[-1] if seconds else 0.0)
        training = self.spec.training.replace(steps=steps, max_seconds=most)
        if (self._history.finished or {}).get("reason") == "risen":
            training = training.replace(patience=0)  # a visitor who asks for more steps has been told
        self.limits.check_training(self.spec.model, training)
        self._before_resume = self._history.last_step, self.spec
        self.spec = replace(self.spec, training=training)

    def attempt_over(self) -> None:
        """A run that made no further step gets its former settings back."""
        step, spec = self._before_resume or (None, self.spec)
        self.spec = spec if step == self._history.last_step else self.spec

    # ---- seen from a page --------------------------------------------------------------------------------------------

    @property
    def checkpoint(self) -> Checkpoint:
        """Its model. Raises ValueError if it no longer has one."""
        return self.registry.get(self.id, self.visitor)

    @property
    def evaluations(self) -> int:
        """How many evaluations there have been."""
        return len(self._history.evaluations["step"])

    @property
    def corpus_key(self) -> str:
        prepared = self._prepared
        return f"{prepared.corpus_sha256}/{prepared.tokenizer.name}/{prepared.config.vocab_size}" if prepared else ""

    @property
    def tokens(self) -> int:
        """How many tokens its text has; 0 before it was read."""
        return self._prepared.train_tokens + self._prepared.val_tokens if self._prepared else 0

    def view(self) -> RunView:
        """A consistent copy of the run's present state."""
        with self._lock:
            prepared = self._prepared
            used = None if self.active else self.used  # a continuing run has left those weights behind
            return RunView(
                **self.seen_as(),
                history=self._history.copied(),
                planned_steps=self.spec.training.steps,
                latest=self._latest,
                config=prepared.config if prepared else None,
                tokenizer=prepared.tokenizer if prepared else None,
                corpus_key=self.corpus_key,
                prompt=self.spec.prompt,
                sample_temperature=sample_temperature(self._history, self.spec.training.sample_temperature),
                language=(prepared.language or "") if prepared else "",
                learned_text=self._text,
                before=self._before,
                now=self._now if used is None else self._of_used,
                settings=settings_of(self.spec),
                can_resume=self.can_resume,
                repeats=self.repeats,
                lengthened=self.lengthened,
                used=used,
                kept=self._better_step,
                tuning=None if self.active else self._tuning(used),
            )

    @property
    def _better_step(self) -> int | None:
        """The step whose kept weights predict the validation text noticeably better than the last ones."""
        best = self._better
        return best[0] if best and is_behind(self._history.val_loss, best[1]) else None

    def _tuning(self, used: int | None) -> dict[str, Any] | None:
        """What further training has changed in the weights in use; None if that was not measured."""
        tuning = self._tuned.get("tuning")
        if used is None or not tuning:
            return tuning
        return tuning | {"after": tuning["best"]} if "best" in tuning else None

    @property
    def can_resume(self) -> bool:
        """Whether `Board.resume` can continue this run."""
        return self.state == "finished" and self.has_result and self._history.last_step > 0 and not self._unsaved

    @property
    def time_left(self) -> float | None:
        return self._latest.time_left if self._latest and self.state == "training" else None

    def expected(self, seconds: Callable[..., float]) -> float:
        training = self.spec.training
        steps = max(training.steps - self._history.last_step, 1)
        return min(seconds(self.spec.model, training.replace(steps=steps), self.tokens), self.limits.seconds)

    def renamed(self, model_id: str, name: str) -> None:
        """A run has the same name as its model."""
        with self._lock:
            self.name = name
            self.version += 1

    # ---- its life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, or continue from the saved state, in a thread of its own."""
        resume = self.has_result or self._before_resume is not None

        def events(should_stop: Callable[[], bool]) -> Iterator[RunEvent]:
            folder = self.folder if resume or self.registry.data.can_write(self.folder) else None
            self._unsaved, spec = folder is None, self._with_moments(self.spec.model)
            return self.runner(spec, self.limits, folder=folder, resume=resume, should_stop=should_stop)

        def take(event: RunEvent) -> None:
            if isinstance(event, Learned):
                self._keep(event)
            else:
                self._take(event)

        self.begin("Picking up where it stopped …" if resume else "Reading the text …", events, take)

    def _take(self, event: RunEvent) -> None:
        if isinstance(event, (Snapshotted, BestKept)) or (isinstance(event, Started) and event.step):
            self._keep_moment(lambda: self._put_weights_away(event))
        with self._lock:
            if isinstance(event, Prepared):
                self._prepared, self.message = event, "Building the model …"
                if event.unknown:
                    parts = ", ".join(repr(part) for part in event.unknown)
                    self._notices = [f"The prompt has parts without a token: {parts}. They are read as unknown."]
            elif isinstance(event, Predicted):
                if self._before is None and event.step == 0:
                    self._before = event.probabilities
                self._now = event.probabilities
            elif isinstance(event, Measuring):
                self.done = event.share
            elif isinstance(event, Tuned):
                self._tuned = event.about
            elif isinstance(event, Laddered):
                self._text = event.learned
                self._take_ladder(event)
                if (made := self._here()) is not None:
                    self._remember_text(made.model)
            elif isinstance(event, TrainEvent):
                self._history.add(event)
                made = self._here() if self.state == "finished" else None
                if isinstance(event, SkillMeasured) and made is not None:
                    made.history.add(event)  # the last verdict comes after the model
                if isinstance(event, (Started, Evaluated)) and self.state == "preparing":
                    self.state, self.message = "training", ""
                if isinstance(event, Started):
                    self._started, self.done = event, 0.0
                elif isinstance(event, Stepped):
                    self._latest = event
                elif isinstance(event, Noticed):
                    self._notices.append(message(event))
                    self._unsaved = self._unsaved or event.kind == NOT_SAVED
                elif isinstance(event, Saved):
                    self._unsaved = False
                elif isinstance(event, Finished):
                    self.message = message(event)
            self.version += 1
        if isinstance(event, Saved):
            self.tries = 0 if event.step > self._started.step else self.tries
            self._noting()  # with as many verdicts as the saved state has
        if self.told is not None and isinstance(event, (Evaluated, Laddered)):
            self.told(self)

    def _put_weights_away(self, event: Snapshotted | BestKept | Started) -> None:
        """Save the present weights; when starting again, delete those of later steps."""
        if isinstance(event, Started):
            drop_after(self.folder, event.step)
        elif isinstance(event, BestKept):
            keep_best(self.folder, event.best_step, event.state, tied=self._prepared.config.tie_embeddings)
        else:
            keep_snapshot(self.folder, event.step, event.state, tied=self._prepared.config.tie_embeddings)

    def _here(self) -> Checkpoint | None:
        """Its model, if it is in memory."""
        return self.registry.here(self.id) if self.has_result else None

    def _keep(self, event: Learned) -> None:
        """Put the trained model into the registry, then say so."""
        self.attempt_over()
        history = self.view().history
        if history.best and history.best[0] == history.last_step:
            drop_best(self.folder)
        self.used = None
        self._remember_text(event.model)
        self._put(
            self.id, self._checkpoint(self.id, event.model, history, self.name, self.spec.training, **self._tuned)
        )
        self._set(state="finished")
        if self.told is not None:
            self.told(self)

    def _put(self, model_id: str, checkpoint: Checkpoint) -> None:
        self._better = checkpoint.best
        super()._put(model_id, checkpoint)

    # ---- after a restart ---------------------------------------------------------------------------------------------

    def noted(self) -> dict[str, Any]:
        with self._lock:
            return super().noted() | {
                "planned_first": self.planned_first,
                "repeats": self.repeats.to_letters() if self.repeats else None,
                "tuned": self._tuned,
                "judged": self._history.judged,
                "ended": self._history.finished,
                "used": self.used,
            }

    @classmethod
    def found(cls, row: Mapping[str, Any], noted: Mapping[str, Any], limits: Limits, registry: Registry) -> RunJob:
        """Restore a run after a restart from a row of the index and the notes kept with it.

        A run that was training when the server ended has its last saved state as its model, and waits to continue.
        """
        repeats = RunCard.from_letters(noted["repeats"]) if noted["repeats"] else None
        spec = TypeAdapter(RunSpec).validate_python(noted["spec"])
        job = cls(row["id"], row["visitor"], row["name"], spec, limits, registry, repeats)
        job._find(noted)
        job.planned_first, job.used, job._tuned = noted["planned_first"], noted["used"], noted.get("tuned") or {}
        saved = SavedRun.of(job.folder) if (job.folder / FILE).exists() and job._prepared else None
        if row["state"] == "over":
            job._find_over(noted)
            if job.has_result and job.used is None:
                job._history = record_of(job.folder)[0]
            elif saved is not None:  # saved before the end; the notes say how the run ended
                job._history = replace(saved.history, finished=noted.get("ended"), judged=noted["judged"])
            snapshots = find_snapshots(job.folder, job._prepared.config) if job.has_result else None
            job._better = best_kept(job._history, snapshots) if job.used is None else None
        elif saved is not None:
            job._go_back_to(saved, noted["judged"])
        return job

    def _go_back_to(self, saved: SavedRun, judged: list[dict[str, Any]]) -> None:
        """Return to the last saved state, which is this run's model until it continues."""
        self._history = saved.history
        self._history.judged = [record for record in judged if record["step"] <= saved.step]
        self._put(self.id, self._saved(saved))
        self._before_resume = saved.step, self.spec

    def _saved(self, saved: SavedRun) -> Checkpoint:
        """The model with its last saved weights."""
        model = Transformer(saved.model)
        model.load_state_dict(saved.weights)
        history = self._history.copied()
        return self._checkpoint(self.id, model, history, self.name, self.spec.training, **self._tuned)

    def read_text(self, model: Transformer) -> None:
        """Read the text with which this model's writing is compared, unless known: a restart loses it."""
        if self._text is None and self._prepared is not None and not self._prepared.language:
            try:
                own = self._prepared.tokenizer if self.spec.parent else None
                self._text = corpus_for(self.spec, self.limits, own).learned()
            except (OSError, ValueError):
                logger.exception("the text of a run cannot be read again")
        self._remember_text(model)

    def predict(self) -> None:
        """Compute the predictions after the prompt, before training and now, unless known. A restart loses them."""
        asked = list(self._prepared.asked) if self._prepared else []
        if self._now is None and asked and self.has_result:
            checkpoint = self.checkpoint
            now = predict(checkpoint.model, asked)
            new = not self.spec.parent and Transformer(checkpoint.config, seed=self.spec.training.seed)
            with self._lock:
                self._before, self._now = predict(new, asked) if new else None, now
                self._of_used = now

    def other(self, *, best: bool) -> tuple[Checkpoint, Checkpoint, int | None, torch.Tensor | None]:
        """The run's model, and its model with other weights: those of the lowest validation loss, or else the last.

        With the `used` step of these, and what they predict (V,) after the prompt. Raises ValueError if they are not
        kept, or are the model's.
        """
        now = self.checkpoint if self.settled and self.has_result else None
        if now is None or (now.best is None if best else self.used is None or not self.view().can_return):
            raise ValueError(f"This run has no {'better weights than the last ones' if best else 'later weights'}.")
        used, other = (now.best[0], now.at("best")) if best else (None, self._saved(SavedRun.of(self.folder)))
        asked = list(self._prepared.asked)
        return now, other, used, predict(other.model, asked) if asked else None

    def use(self, now: Checkpoint, other: Checkpoint, used: int | None, predicted: torch.Tensor | None) -> None:
        """Let these weights (of `other()`) be the model from now on; its record ends with them.

        The run itself does not change: it continues from its last step. Raises ValueError if it has changed since.
        """
        if self.registry.here(self.id) is not now or not self.settled:
            raise ValueError("This run has changed in the meantime. Open it again.")
        self._remember_text(other.model)
        tuning = {"tuning": self._tuning(used)} if self._tuned else {}
        self._put(self.id, replace(other, about=other.about | tuning))
        with self._lock:
            self.used, self._of_used = used, predicted
            self._now = predicted if used is None else self._now
            self.version += 1

    def _remember_text(self, model: Transformer) -> None:
        if self._text is not None:
            verdicts.remember(model, self._text)


def settings_of(spec: RunSpec) -> dict:
    """The settings of a run as one flat table, by the names used in configs."""
    unsaid = ("snapshots", "vocab_size", "sample_prompt", "max_seconds", "autosave_seconds", "device")
    table = {"text": spec.source.title, "tokenizer": spec.tokenizer, **spec.model.to_dict(), **spec.training.to_dict()}
    learned = {"vocab_size": spec.vocab_size} if spec.vocab_size else {}
    return {name: value for name, value in table.items() if name not in unsaid} | learned
