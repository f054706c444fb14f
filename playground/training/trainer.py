"""The trainer: train(model, corpus, config) yields events while the model learns. It never prints, plots or decides.

B = batch, T = context length, V = vocabulary.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F

from ..data.corpus import Corpus
from ..data.ladder import IGNORE
from ..devices import keep_freed_memory, mixed, pick_device, pick_precision
from ..model import Transformer
from . import autosave
from .config import TrainConfig
from .events import (
    Evaluated,
    Finished,
    GradientsMeasured,
    LoadMeasured,
    Noticed,
    Sampled,
    Saved,
    Snapshotted,
    Started,
    Stepped,
    TrainEvent,
)
from .history import History
from .optimizers import make_optimizers

EVALUATION_BATCH = 64


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

    With `folder`, the run's state is saved there every `autosave_seconds`; with `resume` it first continues from what
    that folder holds, on the same curve. `should_stop` is asked after every step. Whatever the end, the model holds
    what was learned and lives on the CPU again.

    Raises ValueError before the first event where model, corpus and config do not fit together.
    """
    run = _Run(model, corpus, config, Path(folder) if folder is not None else None)
    if resume:
        run.restore()
    return _recorded(run, should_stop)


def _recorded(run: _Run, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
    try:
        for event in run.events(should_stop):
            run.history.add(event)
            yield event
    finally:
        run.model.to("cpu")


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats of logits (B, T, V) against targets (B, T); IGNORE targets do not count."""
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORE)


@torch.no_grad()
def evaluate(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor) -> float:
    """Mean loss in nats per counted token over windows (N, T), in the precision of the weights."""
    device = next(model.parameters()).device
    total, counted = 0.0, 0
    for x, y in zip(inputs.split(EVALUATION_BATCH), targets.split(EVALUATION_BATCH)):
        logits = model(x.to(device)).logits
        y = y.to(device).flatten()
        total += F.cross_entropy(logits.flatten(0, 1), y, ignore_index=IGNORE, reduction="sum").item()
        counted += int((y != IGNORE).sum())
    return total / max(counted, 1)


class _Run:
    """One training run: its optimizers, its random states, and how far it has come."""

    def __init__(self, model: Transformer, corpus: Corpus, config: TrainConfig, folder: Path | None):
        if corpus.vocab_size > model.config.vocab_size:
            raise ValueError(
                f"the text has {corpus.vocab_size} different tokens but the model knows only {model.config.vocab_size}"
            )
        corpus.check_context(model.config.context_length)
        self.device = pick_device(config.device)
        if self.device.type == "cpu":
            keep_freed_memory()
        self.dtype = pick_precision(config.precision, self.device)
        self.model, self.corpus, self.config, self.folder = model.to(self.device), corpus, config, folder
        self.optimizers = make_optimizers(model, config)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.dtype == torch.float16)
        self.batches = torch.Generator().manual_seed(config.seed)
        self.dropout = torch.Generator(self.device).manual_seed(config.seed + 1)
        self.windows = {split: corpus.windows(split, model.config.context_length, config.eval_windows)
                        for split in ("train", "val")}  # fmt: skip
        self.step, self.seconds_before, self.history = 0, 0.0, History()
        self.good_weights = _copy(model)

    # ---- the run, from above ---------------------------------------------------------------------------------------

    def events(self, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
        """The whole run; its end is always a Finished event."""
        config, forward = self.config, self.model
        self.began = time.perf_counter()
        if config.compile:
            forward, notice = _compiled(self.model, self._batch()[0], self.batches)
            if notice:
                yield Noticed(self.step, self.seconds, notice)
        T = self.model.config.context_length
        tokens_per_step = config.batch_size * config.accumulation * T
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
        snapshot_steps = set(config.snapshot_steps())
        if self.step == 0:
            yield from self._look(snapshot_steps)
        recent: deque[float] = deque(maxlen=20)  # seconds of the last steps
        saved_at = time.perf_counter()
        reason = "done"
        while self.step < config.steps:
            if should_stop():
                reason = "stopped"
                break
            if config.max_seconds is not None and self.seconds >= config.max_seconds:
                reason = "time"
                break
            before = time.perf_counter()
            loss, norm, load = self._one_step(forward)
            if not (math.isfinite(loss) and math.isfinite(norm)):
                if not math.isfinite(loss):
                    self.model.load_state_dict(self.good_weights)
                reason = "diverged"
                break
            recent.append(time.perf_counter() - before)
            per_step = sum(recent) / len(recent)
            yield Stepped(
                self.step,
                self.seconds,
                loss=loss,
                learning_rate=self.config.learning_rate * config.rate_at(self.step),
                gradient_norm=norm,
                tokens_per_second=tokens_per_step / per_step,
                time_left=per_step * (config.steps - self.step),
            )
            if load is not None and self._due(config.eval_every):
                yield LoadMeasured(self.step, self.seconds, load.tolist())
            yield from self._look(snapshot_steps)
            if self.folder is not None and time.perf_counter() - saved_at >= config.autosave_seconds:
                yield self.save()
                saved_at = time.perf_counter()
        yield from self._ending(reason)

    def _ending(self, reason: str) -> Iterator[TrainEvent]:
        if self.history.evaluations["step"][-1:] != [self.step]:
            yield self._evaluate()
        message = {
            "done": f"All {self.step:,} steps are done.",
            "stopped": f"Stopped after {self.step:,} of {self.config.steps:,} steps; what was learned is kept.",
            "time": f"Time is up after {self.step:,} of {self.config.steps:,} steps; what was learned is kept.",
            "diverged": (
                f"The loss stopped being a number after {self.step:,} steps. The last good weights are back: "
                "try a lower learning rate, a longer warm-up or gradient clipping."
            ),
        }[reason]
        val_loss = self.history.val_loss
        finished = Finished(self.step, self.seconds, reason=reason, message=message, val_loss=val_loss)
        if self.folder is not None and reason != "diverged":
            yield self.save()
        yield finished

    # ---- one step --------------------------------------------------------------------------------------------------

    def _one_step(self, forward: Callable) -> tuple[float, float, torch.Tensor | None]:
        """Forward, backward, clip, update. Returns the loss, the gradient's length and the experts' load."""
        config = self.config
        rng = self.dropout if self.model.config.dropout or self.model.config.router_noise else None
        total, load = torch.zeros((), device=self.device), None
        for _ in range(config.accumulation):
            x, y = self._batch()
            with mixed(self.dtype, self.device):
                output = forward(x, rng=rng)
                loss = loss_of(output.logits, y)
            total += loss.detach() / config.accumulation
            if output.balance_loss is not None:
                loss, load = loss + output.balance_loss, output.expert_load
            self.scaler.scale(loss / config.accumulation if config.accumulation > 1 else loss).backward()
        for optimizer in self.optimizers:
            self.scaler.unscale_(optimizer)
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
        if config.gradient_clip:
            torch.nn.utils.clip_grads_with_norm_(parameters, config.gradient_clip, norm)
        if self._due(config.eval_every, self.step + 1):
            self.norms = gradient_norms(self.model)
        loss_value, norm_value = total.item(), norm.item()
        overflowed = self.scaler.is_enabled() and not math.isfinite(norm_value)
        if math.isfinite(loss_value) and (math.isfinite(norm_value) or overflowed):
            factor = config.rate_at(self.step + 1)
            for optimizer in self.optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = group["peak_lr"] * factor
                self.scaler.step(optimizer)  # fp16 skips the update after an overflow and lowers its scale
            self.scaler.update()
            if load is not None:
                self.model.shift_selection(load)
            self.step += 1
        for parameter in parameters:
            parameter.grad = None
        return loss_value, 0.0 if overflowed else norm_value, load

    def _batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = self.corpus.batch("train", self.config.batch_size, self.model.config.context_length, self.batches)
        return (x, y) if self.device.type == "cpu" else (x.to(self.device), y.to(self.device))

    # ---- looking at the model --------------------------------------------------------------------------------------

    def _look(self, snapshot_steps: set[int]) -> Iterator[TrainEvent]:
        """Whatever is due after this step: evaluation, gradient norms, sample, snapshot."""
        config = self.config
        if self._due(config.eval_every):
            yield self._evaluate()
            if self.step:
                yield GradientsMeasured(self.step, self.seconds, self.norms)
        if self._due(config.sample_every):
            yield self._sample()
        if self.step in snapshot_steps:
            state = {name: t.detach().to("cpu", torch.float16) for name, t in self.model.state_dict().items()}
            yield Snapshotted(self.step, self.seconds, state)

    def _due(self, every: int, step: int | None = None) -> bool:
        step = self.step if step is None else step
        return every > 0 and (step % every == 0 or step == self.config.steps)

    def _evaluate(self) -> Evaluated:
        losses = {split: evaluate(self.model, *windows) for split, windows in self.windows.items()}
        if all(map(math.isfinite, losses.values())):
            self.good_weights = _copy(self.model)
        return Evaluated(self.step, self.seconds, train_loss=losses["train"], val_loss=losses["val"])

    def _sample(self) -> Sampled:
        from ..decoding import SamplingConfig, generate

        config, tokenizer = self.config, self.corpus.tokenizer
        prompt = tokenizer.encode(config.sample_prompt) or [int(self.windows["val"][0][0, 0])]
        sampling = SamplingConfig(temperature=config.sample_temperature, seed=config.seed)
        written = [s.tokens[0] for s in generate(self.model, prompt, config.sample_tokens, sampling)]
        shown = tokenizer.decode(prompt) if config.sample_prompt else ""
        text = tokenizer.decode(prompt + written)[len(tokenizer.decode(prompt)) :]
        return Sampled(self.step, self.seconds, prompt=shown, text=text)

    # ---- saving ----------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Wall time of the run, earlier parts included."""
        return self.seconds_before + time.perf_counter() - self.began

    @property
    def _generators(self) -> dict[str, torch.Generator]:
        return {"batches": self.batches, "dropout": self.dropout}

    def save(self) -> Saved:
        """Write all that `restore` needs."""
        notes = {
            "step": self.step,
            "seconds": self.seconds,
            "history": self.history.to_dict(),
            "scaler": self.scaler.state_dict(),
            "config": self.config.to_dict(),
            "model": self.model.config.to_dict(),
        }
        path = autosave.save(self.folder, self.model, self.optimizers, self._generators, notes)
        return Saved(self.step, self.seconds, str(path))

    def restore(self) -> None:
        """Go back to what the folder holds; the next step is the one that would have followed."""
        if self.folder is None:
            raise ValueError("to resume, name the folder that holds the run")
        notes = autosave.load(self.folder, self.model, self.optimizers, self._generators)
        self.step, self.seconds_before = notes["step"], notes["seconds"]
        self.history = History.from_dict(notes["history"])
        self.history.finished = None
        self.scaler.load_state_dict(notes["scaler"])
        self.good_weights = _copy(self.model)


def gradient_norms(model: Transformer) -> dict[str, float]:
    """Length of the gradient of each part of the model: embedding, every block's attention and feed-forward, head."""
    squares: dict[str, float] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            where = name.split(".")
            part = f"{where[1]} {where[2].removesuffix('_norm')}" if where[0] == "blocks" else where[0]
            squares[part] = squares.get(part, 0.0) + float(parameter.grad.float().square().sum())
    return {part: math.sqrt(total) for part, total in squares.items()}


def _compiled(model: Transformer, x: torch.Tensor, batches: torch.Generator) -> tuple[Callable, str | None]:
    """The compiled forward, or the plain one and a sentence where this machine cannot compile."""
    try:
        compiled = torch.compile(model, dynamic=False)
        compiled(x, rng=None).logits.sum().backward()
        for parameter in model.parameters():
            parameter.grad = None
        return compiled, None
    except Exception as problem:  # a missing C++ compiler shows itself in many ways
        first_line = str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__
        return model, f"torch.compile does not work on this machine ({first_line}), so training runs without it."


def _copy(model: Transformer) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
