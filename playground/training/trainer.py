"""The trainer: train(model, corpus, config) yields events while the model learns. It never prints, plots or decides.

This is the loop. Whatever else is done with a model that learns is done by those who consume the loop's events:
samples.py samples it and keeps its weights, autosave.py saves the run, resume.py goes on with what was saved.

B = batch, T = context length, V = vocabulary.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from ..data.corpus import Corpus
from ..devices import pick_precision
from ..model import Transformer
from .autosave import saved
from .best import Best
from .compiling import compiled
from .config import TrainConfig
from .distributed import ALONE, Alone, WorkerLost, facts
from .events import (
    BestKept,
    Changed,
    Evaluated,
    Finished,
    GradientsMeasured,
    LoadMeasured,
    Noticed,
    Rested,
    Started,
    Stepped,
    TrainEvent,
    ended_in_words,
)
from .history import History
from .learner import Learner
from .lock import owned
from .losses import Interrupted, evaluate
from .proof import device_for
from .resume import restore
from .samples import sampled, snapshotted
from .states import risen_for


def train(
    model: Transformer,
    corpus: Corpus,
    config: TrainConfig,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    workers: Alone = ALONE,
) -> Iterator[TrainEvent]:
    """Train `model` in place on `corpus`, yielding what happens.

    With `folder`, the run's state is saved there every `autosave_seconds`, and no other run may use the folder until
    the last event was taken; with `resume` it first continues from what that folder holds, on the same curve.
    `should_stop` is asked after every step. Whatever the end, the model holds what was learned and lives on the CPU
    again. As one of several `workers`, this process reads its part of each batch (see `distributed.py`).

    Raises ValueError before the first event where model, corpus, config and what is to be resumed do not fit together.
    """
    folder = Path(folder) if folder is not None else None
    if resume and folder is None:
        raise ValueError("to resume, name the folder that holds the run")
    run = Run(model, corpus, config, workers)
    events = snapshotted(run, sampled(run, run.events(should_stop)))
    with ExitStack() as held:
        if folder is not None and workers.first:  # of several processes, the first one saves
            held.callback(owned(folder).release)
            events = saved(run, folder, events)
        if resume:
            restore(run, folder)
        return _told(run, events, held.pop_all())


def _told(run: Run, events: Iterator[TrainEvent], held: ExitStack) -> Iterator[TrainEvent]:
    with held:
        try:
            for event in events:
                if isinstance(event, Rested):
                    continue
                run.history.add(event)
                handed_over = time.perf_counter()
                yield event
                run.began += time.perf_counter() - handed_over  # what the reader does meanwhile is not training
        finally:
            run.model.to("cpu")


class Run:
    """One training run: its optimizers, its random states, and how far it has come."""

    def __init__(self, model: Transformer, corpus: Corpus, config: TrainConfig, workers: Alone = ALONE):
        if corpus.vocab_size > model.config.vocab_size:
            raise ValueError(
                f"the text has {corpus.vocab_size} different tokens but the model knows only {model.config.vocab_size}"
            )
        corpus.check_context(model.config.context_length)
        if config.batch_size < workers.size:
            raise ValueError(
                f"a batch of {config.batch_size} cannot be shared out among {workers.size} processes: "
                f"raise batch_size to at least {workers.size}"
            )
        self.model, self.corpus, self.config, self.workers = model, corpus, config, workers
        self.device, distrust = device_for(config, model.config)
        self.dtype = pick_precision(config.precision, self.device)
        self.learner = Learner(model, corpus, config, self.device, self.dtype, workers)
        windows = {split: corpus.windows(split, model.config.context_length, config.eval_windows)
                   for split in ("train", "val")}  # fmt: skip
        self.windows = {split: (workers.rows(x), workers.rows(y)) for split, (x, y) in windows.items()}
        self.step, self.seconds_before, self.history = 0, 0.0, History()
        self.notices = [distrust] if distrust else []  # sentences to begin with
        self.changes: dict[str, tuple] = {}  # settings that are not those it was saved with: name → (before, now)
        self.best: Best | None = None
        self.told_best: int | None = None  # the step of the last BestKept
        self.remember_good()

    # ---- the run, from above ---------------------------------------------------------------------------------------

    def events(self, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
        """The whole run; its end is always a Finished event."""
        self.began = time.perf_counter()
        self.hurried = lambda: self._wish_to_end(should_stop)
        try:
            yield from self._all_steps(should_stop)
        except WorkerLost:
            yield from self._ending("lost")
        except Interrupted:  # amid an evaluation, which nobody waits for
            yield from self._ending(self.hurried() or "stopped", look=False)

    def _all_steps(self, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
        config, forward = self.config, self.model
        if self.workers.size > 1:
            self.workers.check_alike(facts(self.model, self.corpus, config, self.step))
            self.notices.append(f"{self.workers.size} processes share each batch.")
        if config.compile:
            forward, notice = compiled(self.model, self.learner.example())
            self.notices += [notice] if notice else []
        for notice in self.notices:
            yield Noticed(self.step, self.seconds, notice)
        if self.changes:
            yield Changed(self.step, self.seconds, self.changes)
        tokens_per_step = config.batch_size * config.accumulation * self.model.config.context_length
        yield Started(
            self.step,
            self.seconds,
            steps=config.steps,
            n_parameters=self.model.config.n_parameters,
            tokens_per_step=tokens_per_step,
            device=self.device.type,
            precision=str(self.dtype).removeprefix("torch."),
            compiled=forward is not self.model,
        )
        if self.step == 0:
            yield from self._look()
        yield from self._best_behind()
        recent: deque[float] = deque(maxlen=20)  # seconds of the last steps
        first, begun, stepping = self.step, self.seconds, 0.0
        reason = "done"
        while self.step < config.steps:
            if ending := self.workers.agree(self._wish_to_end(should_stop)):
                reason = ending
                break
            before = time.perf_counter()
            made = self.learner.make(self.step + 1, forward, measure=self.due(config.eval_every, self.step + 1))
            if not made.sound:
                if not math.isfinite(made.loss):  # steps before it spoiled the weights; a bad gradient was not applied
                    self.model.load_state_dict(self.good_weights)
                reason = "diverged"
                break
            self.step += 1
            recent.append(time.perf_counter() - before)
            stepping += recent[-1]
            per_step = sum(recent) / len(recent)
            between = (self.seconds - begun - stepping) / (self.step - first)  # evaluations, samples
            yield Stepped(
                self.step,
                self.seconds,
                loss=made.loss,
                learning_rate=config.learning_rate * config.rate_at(self.step),
                gradient_norm=made.gradient_norm,
                tokens_per_second=tokens_per_step / per_step,
                time_left=(per_step + max(between, 0.0)) * (config.steps - self.step),
            )
            if made.load is not None and self.due(config.eval_every):
                yield LoadMeasured(self.step, self.seconds, made.load.tolist())
            yield from self._look(made.norms)
        yield from self._ending(reason)

    def _look(self, norms: dict[str, float] | None = None) -> Iterator[TrainEvent]:
        """Evaluate where that is due, and rest: let the others do with the model what is due."""
        if self.due(self.config.eval_every):
            yield from self._evaluate()
            if norms:
                yield GradientsMeasured(self.step, self.seconds, norms)
        yield Rested(self.step, self.seconds)

    def _wish_to_end(self, should_stop: Callable[[], bool]) -> str:
        """Why this process would rather not make another step; "" if it would."""
        if should_stop():
            return "stopped"
        if self.config.patience and risen_for(self.history, self.config.eval_every) >= self.config.patience:
            return "risen"
        return "time" if self.config.max_seconds is not None and self.seconds >= self.config.max_seconds else ""

    def _ending(self, reason: str, look: bool = True) -> Iterator[TrainEvent]:
        self.hurried = lambda: ""
        if look and reason != "lost" and self.history.evaluations["step"][-1:] != [self.step]:
            yield from self._evaluate()
        message = ended_in_words(reason, self.step, self.config.steps, self.workers.size)
        yield Finished(self.step, self.seconds, reason=reason, message=message, val_loss=self.history.val_loss)

    # ---- what the others need --------------------------------------------------------------------------------------

    def due(self, every: int, step: int | None = None) -> bool:
        """Whether what happens every so many steps, and after the last, happens after this one."""
        step = self.step if step is None else step
        return every > 0 and (step % every == 0 or step == self.config.steps)

    @property
    def seconds(self) -> float:
        """Wall time of the run, earlier parts included, the reader's time between two events left out."""
        return self.seconds_before + time.perf_counter() - self.began

    @property
    def machine(self) -> str:
        """Where and with how many digits it computes."""
        return f"{str(self.dtype).removeprefix('torch.')} on {self.device.type}"

    def remember_good(self) -> None:
        """Keep the weights as they are, to go back to where a step spoils them."""
        self.good_weights = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    def _evaluate(self) -> Iterator[TrainEvent]:
        losses = {split: evaluate(self.model, *windows, self.workers, self.hurried)
                  for split, windows in self.windows.items()}  # fmt: skip
        if all(map(math.isfinite, losses.values())):
            self.remember_good()
            if self.best is None or losses["val"] < self.best.val_loss:
                self.best = Best(self.step, losses["val"], self.good_weights)  # one copy serves both
        yield Evaluated(self.step, self.seconds, train_loss=losses["train"], val_loss=losses["val"])
        # by here `_told` has taken it into the history
        yield from self._best_behind()

    def _best_behind(self) -> Iterator[TrainEvent]:
        """Hand the best weights on, once, where those of now are no longer they."""
        best, evaluated = self.best, self.history.evaluations["step"][-1:]
        if best is not None and evaluated and best.step not in (*evaluated, self.told_best):
            self.told_best = best.step
            state = {name: tensor.to("cpu") for name, tensor in best.weights.items()}
            yield BestKept(self.step, self.seconds, best_step=best.step, val_loss=best.val_loss, state=state)
