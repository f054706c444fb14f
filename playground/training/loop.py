"""The training loop: `train(model, corpus, config)` yields what happens while the model learns.

One training step, in the order of `Run.loop`:

1. `gradient` draws the batches, runs the model forwards, takes the loss and runs backwards.
2. `update` measures the gradient's length and clips it; then every optimizer steps, or none if a number
overflowed. The routers' biases move with them.
3. The step's event is put into the run's history and handed on; where it is due, both splits are evaluated.
4. The model is at rest. Each observer (`samples.py`, `autosave.py`) may look at it and report what it saw, as events;
   it may not change anything. The consumer takes the next event when it likes.

Weights change in step 2, when a saved run is restored, and when a loss is not a number: then the run returns to its
last good weights. On the same kind of machine a run repeats to the last digit: everything it draws comes from the
generators of `Run`, which are seeded by the config and saved with the run.

B = batch, T = context length, L = MoE layers, E = experts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import torch

from ..data.corpus import Corpus
from ..devices import mixed, pick_precision
from ..model import Pass, Transformer
from .autosave import Autosave, owned
from .batches import Batch, weighed
from .compiling import compiled
from .config import TrainConfig
from .events import (
    DEVICE_FAULT,
    NOT_COMPILED,
    BestKept,
    Evaluated,
    Finished,
    GradientsMeasured,
    LoadMeasured,
    Noticed,
    SettingsChanged,
    Started,
    Stepped,
    TrainEvent,
)
from .history import History
from .losses import Interrupted, evaluate, loss_of
from .optimizers import gradient_norms, make_optimizers
from .pace import Pace
from .proof import device_for
from .resume import SavedRun, restore
from .samples import sample, snapshot
from .states import risen_for
from .weights import Weights

Observer = Callable[["Run", TrainEvent], Iterator[TrainEvent]]
"""Called while the model is at rest: after Started (unless resumed), after every Stepped, and just before Finished."""


def train(
    model: Transformer,
    corpus: Corpus,
    config: TrainConfig,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[TrainEvent]:
    """Train `model` in place on `corpus`, yielding what happens.

    With `folder`, the run's state is saved there every `autosave_seconds`, and no other run may use the folder until
    the last event was taken; with `resume` it first continues from what that folder holds, on the same curve.
    `should_stop` is asked before every step and during evaluations. However the run ends, the model holds what was
    learned and is back on the CPU.

    Raises ValueError before the first event if model, corpus, config and the run to resume do not fit together.
    Until the first event is asked for, the model is neither changed nor moved.
    """
    folder = Path(folder) if folder is not None else None
    if resume and folder is None:
        raise ValueError("to resume, name the folder that holds the run")
    run, observers = Run(model, corpus, config, should_stop), [sample, snapshot]
    with ExitStack() as held:
        if folder is not None:
            held.callback(owned(folder).release)
            observers.append(Autosave(folder))
        saved = SavedRun.of(folder) if resume else None
        if saved is not None:
            saved.check(run)
        return _events(run, saved, observers, held.pop_all())


def _events(run: Run, saved: SavedRun | None, observers: list[Observer], held: ExitStack) -> Iterator[TrainEvent]:
    with held:
        run.model.to(run.device)
        try:
            if saved is not None:
                restore(run, saved)
                saved = None  # whose tensors are not needed any more
            run.began = time.perf_counter()
            for event in run.loop(observers):
                handed_over = time.perf_counter()
                yield event
                run.began += time.perf_counter() - handed_over  # the reader's own time is not training
        finally:
            run.model.to("cpu")


class Run:
    """One training run: all that a step changes (weights, optimizers, generators), how far it has come, its history."""

    def __init__(
        self,
        model: Transformer,
        corpus: Corpus,
        config: TrainConfig,
        should_stop: Callable[[], bool] = lambda: False,
    ):
        if corpus.vocab_size > model.config.vocab_size:
            raise ValueError(
                f"the text has {corpus.vocab_size} different tokens but the model knows only {model.config.vocab_size}"
            )
        corpus.check_context(model.config.context_length)
        self.model, self.corpus, self.config = model, corpus, config
        self.should_stop = should_stop
        self.device, fault = device_for(config, model.config)
        self.dtype = pick_precision(config.precision, self.device)
        self.optimizers = make_optimizers(model, config)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.dtype == torch.float16)
        self.generators = {
            "batches": torch.Generator().manual_seed(config.seed),
            "dropout": torch.Generator(self.device).manual_seed(config.seed + 1),
        }
        self.windows = {split: corpus.windows(split, model.config.context_length, config.eval_windows)
                        for split in ("train", "val")}  # fmt: skip
        self.step, self.history = 0, History()
        self.forward: Callable = model
        self.seconds_before, self.began = 0.0, time.perf_counter()
        self.notices = [(DEVICE_FAULT, asdict(fault))] if fault else []  # kinds and facts of Noticed
        self.changes: dict[str, list] = {}  # settings that differ from the saved run's: name → [before, now]
        self.good: Weights | None = None  # the last weights with finite losses, restored when a step gives NaN
        self.best: Weights | None = None  # the weights with the lowest validation loss
        self.told_best: int | None = None  # the step of the last BestKept

    # ---- the loop --------------------------------------------------------------------------------------------------

    def loop(self, observers: list[Observer]) -> Iterator[TrainEvent]:
        """The whole run; its end is always a Finished event. Every event is in the history before it is handed on."""
        reason, restored, evaluate_last = "", None, True
        try:
            yield from self._begin(observers)
            while not (reason := self.reason_to_end()):
                began, measured = time.perf_counter(), self.due(self.config.eval_every, self.step + 1)
                loss, load = self.gradient()
                norms = gradient_norms(self.model) if measured else {}
                length = self.update(loss, load)
                if length is None:
                    reason = "diverged"
                    if not math.isfinite(loss):  # the weights themselves are spoiled
                        self.model.load_state_dict(self.good.state)
                        restored = self.good.step
                    break
                self.pace.add(time.perf_counter() - began)
                stepped = self.record(self._stepped(loss, length))
                yield stepped
                if measured:
                    if load is not None:
                        yield self.record(LoadMeasured(self.step, self.seconds, load.tolist()))
                    yield from self._evaluate(self.step, self.reason_to_hurry)
                    yield self.record(GradientsMeasured(self.step, self.seconds, norms))
                yield from self._observe(observers, stepped)
        except Interrupted as interrupted:  # during an evaluation, which is dropped
            reason, evaluate_last = interrupted.reason, False
        yield from self._end(reason, restored, evaluate_last, observers)

    def record(self, event: TrainEvent) -> TrainEvent:
        """Put an event into the history and return it."""
        self.history.add(event)
        return event

    def _observe(self, observers: list[Observer], event: TrainEvent) -> Iterator[TrainEvent]:
        for observer in observers:
            for seen in observer(self, event):
                yield self.record(seen)

    def _begin(self, observers: list[Observer]) -> Iterator[TrainEvent]:
        config, shape = self.config, self.model.config
        if self.good is None:
            self.good = Weights.of(self.model, self.step, None)
        if config.compile:
            (aside,), _ = self._batches(torch.Generator().manual_seed(0), 1)  # the batches to come stay what they are
            self.forward, error = compiled(self.model, aside.inputs, aside.mask)
            self.notices += [(NOT_COMPILED, {"error": error})] if error else []
        for kind, noticed in self.notices:
            yield self.record(Noticed(self.step, self.seconds, kind, noticed))
        if self.changes:
            yield self.record(SettingsChanged(self.step, self.seconds, self.changes))
        started = Started(
            self.step,
            self.seconds,
            steps=config.steps,
            n_parameters=shape.n_parameters,
            tokens_per_step=self.tokens_per_step,
            device=self.device.type,
            precision=str(self.dtype).removeprefix("torch."),
            compiled=self.forward is not self.model,
        )
        yield self.record(started)
        if self.step == 0:
            if self.due(config.eval_every):
                yield from self._evaluate(self.step, self.reason_to_hurry)
            yield from self._observe(observers, started)
        yield from self._best_behind()
        self.pace = Pace(self.seconds)

    def reason_to_hurry(self) -> str:
        """Why the run must end before its planned last step; "" to continue."""
        if self.should_stop():
            return "stopped"
        if self.config.patience and risen_for(self.history, self.config.eval_every) >= self.config.patience:
            return "risen"
        return "time" if self.config.max_seconds is not None and self.seconds >= self.config.max_seconds else ""

    def reason_to_end(self) -> str:
        """Why no further step is made, the planned end included; "" to continue."""
        return "done" if self.step >= self.config.steps else self.reason_to_hurry()

    def _end(
        self, reason: str, restored: int | None, evaluate_last: bool, observers: list[Observer]
    ) -> Iterator[TrainEvent]:
        final_step = self.step if restored is None else restored  # of the weights that remain
        if evaluate_last and final_step not in self.history.evaluations["step"]:
            yield from self._evaluate(final_step)
        known = self.good.val_loss if self.good.step == final_step else None
        finished = Finished(
            self.step,
            self.seconds,
            reason=reason,
            steps=self.config.steps,
            val_loss=self.history.val_loss if known is None else known,
            weights_step=restored,
        )
        yield from self._observe(observers, finished)
        yield self.record(finished)

    # ---- one step --------------------------------------------------------------------------------------------------

    def gradient(self) -> tuple[float, torch.Tensor | None]:
        """Draw the next batches, and store the gradient of their mean loss in the parameters.

        Returns that loss, in nats per token, and the load (L, E): each expert's share of visits; None for a dense
        model.
        """
        total, loads = torch.zeros((), device=self.device), []
        batches, counted = self._batches(self.generators["batches"], self.config.accumulation)
        noise = self.generators["dropout"] if self.model.config.dropout or self.model.config.router_noise else None
        for batch in batches:
            with mixed(self.dtype, self.device):
                output = self.forward(batch.inputs, Pass(generator=noise, mask=batch.mask))
                loss = loss_of(output.logits, batch.targets, counted)
            total += loss.detach()
            if output.balance_loss is not None:
                loss = loss + batch.weight * output.balance_loss
                loads.append(batch.weight * output.expert_load)
            self.scaler.scale(loss).backward()
        for optimizer in self.optimizers:
            self.scaler.unscale_(optimizer)
        return total.item(), torch.stack(loads).sum(dim=0) if loads else None

    def update(self, loss: float, load: torch.Tensor | None) -> float | None:
        """Let every optimizer step, or none; return the gradient's length before clipping, and clear the gradient.

        Returns None and changes nothing if the loss or the gradient is not a number. In fp16 an overflow of the
        gradient only costs this step: its length is given as 0, and the scaler lowers its scale.
        """
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        length = torch.nn.utils.get_total_norm([p.grad for p in parameters])
        sound, overflowed = math.isfinite(loss), not length.isfinite().item()
        if sound and not overflowed:
            if self.config.gradient_clip:
                torch.nn.utils.clip_grads_with_norm_(parameters, self.config.gradient_clip, length)
            for optimizer in self.optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = group["peak_lr"] * self.config.rate_at(self.step + 1)
                self.scaler.step(optimizer)
            if load is not None:
                self.model.shift_selection(load)
        self.model.zero_grad()
        if not sound or (overflowed and not self.scaler.is_enabled()):
            return None
        self.scaler.update()
        self.step += 1
        return 0.0 if overflowed else length.item()

    def _stepped(self, loss: float, length: float) -> Stepped:
        return Stepped(
            self.step,
            self.seconds,
            loss=loss,
            learning_rate=self.config.learning_rate * self.config.rate_at(self.step),
            gradient_norm=length,
            tokens_per_second=self.tokens_per_step / self.pace.per_step,
            time_left=self.pace.time_left(self.seconds, self.config.steps - self.step),
        )

    def _batches(self, generator: torch.Generator, n_passes: int) -> tuple[list[Batch], int | None]:
        """New random batches, one per forward pass, in the form that `weighed` returns."""
        shape = ("train", self.config.batch_size, self.model.config.context_length, generator)
        return weighed([self.corpus.batch(*shape) for _ in range(n_passes)], self.device)

    # ---- evaluations -----------------------------------------------------------------------------------------------

    def _evaluate(self, step: int, should_stop: Callable[[], str] = lambda: "") -> Iterator[TrainEvent]:
        """Score both splits with the weights of `step`. Raises Interrupted if the run has to end meanwhile."""
        losses = {split: evaluate(self.model, *windows, should_stop)
                  for split, windows in self.windows.items()}  # fmt: skip
        if all(map(math.isfinite, losses.values())):
            self.good = Weights.of(self.model, step, losses["val"])
            if self.best is None or losses["val"] < self.best.val_loss:
                self.best = self.good  # one copy serves both
        if step > max(self.history.evaluations["step"], default=-1):  # the history stays in the order of steps
            yield self.record(Evaluated(step, self.seconds, train_loss=losses["train"], val_loss=losses["val"]))
            yield from self._best_behind()

    def _best_behind(self) -> Iterator[TrainEvent]:
        """Hand on the best weights, once, when the current weights are no longer the best."""
        best, evaluated = self.best, self.history.evaluations["step"][-1:]
        if best is not None and evaluated and best.step not in (*evaluated, self.told_best):
            self.told_best = best.step
            state = {name: tensor.to("cpu") for name, tensor in best.state.items()}
            kept = BestKept(self.step, self.seconds, best_step=best.step, val_loss=best.val_loss, state=state)
            yield self.record(kept)

    # ---- what observers may ask --------------------------------------------------------------------------------------

    def due(self, every: int, step: int | None = None) -> bool:
        """Whether an action due every `every` steps, and after the last one, is due after this step."""
        step = self.step if step is None else step
        return every > 0 and (step % every == 0 or step == self.config.steps)

    @property
    def seconds(self) -> float:
        """Wall time of the run, including parts before a resume, without the reader's time between two events."""
        return self.seconds_before + time.perf_counter() - self.began

    @property
    def tokens_per_step(self) -> int:
        """Tokens that the model reads in one step, padding included."""
        return self.config.batch_size * self.config.accumulation * self.model.config.context_length
