"""The trainer: train(model, corpus, config) yields events while the model learns. It never prints, plots or decides.

B = batch, T = context length, V = vocabulary.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F

from ..data.corpus import Corpus
from ..data.ladder import IGNORE
from ..devices import keep_freed_memory, mixed, pick_precision
from ..model import Transformer
from ..model.moe import MixtureOfExperts
from . import autosave
from .config import TrainConfig
from .distributed import ALONE, Alone, WorkerLost
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
from .proof import device_for

EVALUATION_BATCH = 64


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

    With `folder`, the run's state is saved there every `autosave_seconds`; with `resume` it first continues from what
    that folder holds, on the same curve. `should_stop` is asked after every step. Whatever the end, the model holds
    what was learned and lives on the CPU again. As one of several `workers`, this process reads its part of each batch
    (see `distributed.py`).

    Raises ValueError before the first event where model, corpus and config do not fit together.
    """
    run = _Run(model, corpus, config, Path(folder) if folder is not None else None, workers)
    if resume:
        run.restore()
    return _recorded(run, should_stop)


def _recorded(run: _Run, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
    try:
        for event in run.events(should_stop):
            run.history.add(event)
            handed_over = time.perf_counter()
            yield event
            run.began += time.perf_counter() - handed_over  # what the reader does meanwhile is not training
    finally:
        run.model.to("cpu")


def loss_of(logits: torch.Tensor, targets: torch.Tensor, counted: int | None = None) -> torch.Tensor:
    """Mean cross-entropy in nats of logits (B, T, V) against targets (B, T); IGNORE targets do not count.

    Where these are only some of a batch's rows, `counted` is how many targets the whole batch has: then this is their
    part of its mean.
    """
    logits, targets = logits.flatten(0, 1).float(), targets.flatten()
    if counted is None:
        return F.cross_entropy(logits, targets, ignore_index=IGNORE)
    return F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum") / counted


@torch.no_grad()
def evaluate(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor, workers: Alone = ALONE) -> float:
    """Mean loss in nats per counted token over windows (N, T), in the precision of the weights.

    Each of several `workers` gives its own windows; the mean is that of all.
    """
    device = next(model.parameters()).device
    total, counted = 0.0, 0
    for x, y in zip(inputs.split(EVALUATION_BATCH), targets.split(EVALUATION_BATCH)) if len(inputs) else ():
        logits = model(x.to(device)).logits
        y = y.to(device).flatten()
        total += F.cross_entropy(logits.flatten(0, 1), y, ignore_index=IGNORE, reduction="sum").item()
        counted += int((y != IGNORE).sum())
    sums = torch.tensor([total, counted], dtype=torch.float64)
    workers.add_up([sums])
    return float(sums[0] / sums[1].clamp(min=1))


class _Run:
    """One training run: its optimizers, its random states, and how far it has come."""

    def __init__(
        self, model: Transformer, corpus: Corpus, config: TrainConfig, folder: Path | None, workers: Alone = ALONE
    ):
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
        self.workers = workers
        self.device, self.distrust = device_for(config, model.config)
        if self.device.type == "cpu":
            keep_freed_memory()
        self.dtype = pick_precision(config.precision, self.device)
        self.model, self.corpus, self.config, self.folder = model.to(self.device), corpus, config, folder
        self.optimizers = make_optimizers(model, config)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.dtype == torch.float16)
        self.batches = torch.Generator().manual_seed(config.seed)
        self.dropout = torch.Generator(self.device).manual_seed(workers.noise_seed(config.seed + 1, 0))
        windows = {split: corpus.windows(split, model.config.context_length, config.eval_windows)
                   for split in ("train", "val")}  # fmt: skip
        self.windows = {split: (workers.rows(x), workers.rows(y)) for split, (x, y) in windows.items()}
        self.step, self.seconds_before, self.history = 0, 0.0, History()
        self.good_weights = _copy(model)

    # ---- the run, from above ---------------------------------------------------------------------------------------

    def events(self, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
        """The whole run; its end is always a Finished event."""
        self.began = time.perf_counter()
        try:
            yield from self._all_steps(should_stop)
        except WorkerLost:
            yield from self._ending("lost")

    def _all_steps(self, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
        config, forward = self.config, self.model
        if self.distrust:
            yield Noticed(self.step, self.seconds, self.distrust)
        if self.workers.size > 1:
            self._check_alike()
            yield Noticed(self.step, self.seconds, f"{self.workers.size} processes share each batch.")
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
            ending = self.workers.agree(self._wish_to_end(should_stop))
            if ending:
                reason = ending
                break
            before = time.perf_counter()
            loss, norm, load = self._one_step_or_none(forward)
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
            if self.keeps and time.perf_counter() - saved_at >= config.autosave_seconds:
                yield self.save()
                saved_at = time.perf_counter()
        yield from self._ending(reason)

    def _wish_to_end(self, should_stop: Callable[[], bool]) -> str:
        """Why this process would rather not make another step; "" if it would."""
        if should_stop():
            return "stopped"
        return "time" if self.config.max_seconds is not None and self.seconds >= self.config.max_seconds else ""

    def _ending(self, reason: str) -> Iterator[TrainEvent]:
        if reason != "lost" and self.history.evaluations["step"][-1:] != [self.step]:
            yield self._evaluate()
        message = {
            "done": f"All {self.step:,} steps are done.",
            "stopped": f"Stopped after {self.step:,} of {self.config.steps:,} steps; what was learned is kept.",
            "time": f"Time is up after {self.step:,} of {self.config.steps:,} steps; what was learned is kept.",
            "diverged": (
                f"The loss stopped being a number after {self.step:,} steps. The last good weights are back: "
                "try a lower learning rate, a longer warm-up or gradient clipping."
            ),
            "lost": (
                f"One of the {self.workers.size} processes of this run was lost after {self.step:,} of "
                f"{self.config.steps:,} steps; what was learned is kept."
            ),
        }[reason]
        val_loss = self.history.val_loss
        finished = Finished(self.step, self.seconds, reason=reason, message=message, val_loss=val_loss)
        if self.keeps and reason != "diverged":
            yield self.save()
        yield finished

    # ---- one step --------------------------------------------------------------------------------------------------

    def _one_step_or_none(self, forward: Callable) -> tuple[float, float, torch.Tensor | None]:
        """One step; where it fails for want of another process, it is as if it had not begun."""
        states = {name: generator.get_state() for name, generator in self._generators.items()}
        try:
            return self._one_step(forward)
        except WorkerLost:
            for name, generator in self._generators.items():
                generator.set_state(states[name])
            raise

    def _one_step(self, forward: Callable) -> tuple[float, float, torch.Tensor | None]:
        """Forward, backward, clip, update. Returns the loss, the gradient's length and the experts' load."""
        config = self.config
        rng = self.dropout if self.model.config.dropout or self.model.config.router_noise else None
        total, load = torch.zeros((), device=self.device), None
        for _ in range(config.accumulation):
            x, y, counted = self._batch()
            with mixed(self.dtype, self.device):
                output = forward(x, rng=rng)
                loss = loss_of(output.logits, y, counted)
            total += loss.detach() / config.accumulation
            if output.balance_loss is not None:
                share = len(x) / config.batch_size
                balance, load = self.workers.balance(output, share, self.model.config)
                loss = loss + balance
            self.scaler.scale(loss / config.accumulation if config.accumulation > 1 else loss).backward()
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        self.workers.add_up([total, *(p.grad for p in parameters)])
        for optimizer in self.optimizers:
            self.scaler.unscale_(optimizer)
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

    def _batch(self) -> tuple[torch.Tensor, torch.Tensor, int | None]:
        """This process's inputs and targets (B, T) of the next batch, and how many targets all processes count."""
        x, y = self.corpus.batch("train", self.config.batch_size, self.model.config.context_length, self.batches)
        counted, x, y = self.workers.counted(y), self.workers.rows(x), self.workers.rows(y)
        return (x, y, counted) if self.device.type == "cpu" else (x.to(self.device), y.to(self.device), counted)

    # ---- looking at the model --------------------------------------------------------------------------------------

    def _look(self, snapshot_steps: set[int]) -> Iterator[TrainEvent]:
        """Whatever is due after this step: evaluation, gradient norms, sample, snapshot."""
        config = self.config
        if self._due(config.eval_every):
            yield self._evaluate()
            if self.step:
                yield GradientsMeasured(self.step, self.seconds, self.norms)
        if self._due(config.sample_every) and self.workers.first:
            yield self._sample()
        if self.step in snapshot_steps:
            state = {name: t.detach().to("cpu", torch.float16) for name, t in self.model.state_dict().items()}
            yield Snapshotted(self.step, self.seconds, state)

    def _due(self, every: int, step: int | None = None) -> bool:
        step = self.step if step is None else step
        return every > 0 and (step % every == 0 or step == self.config.steps)

    def _evaluate(self) -> Evaluated:
        losses = {split: evaluate(self.model, *windows, self.workers) for split, windows in self.windows.items()}
        if all(map(math.isfinite, losses.values())):
            self.good_weights = _copy(self.model)
        return Evaluated(self.step, self.seconds, train_loss=losses["train"], val_loss=losses["val"])

    def _sample(self) -> Sampled:
        from ..decoding import SamplingConfig, generate

        config, tokenizer = self.config, self.corpus.tokenizer
        prompt = tokenizer.encode(config.sample_prompt) or [int(self.windows["val"][0][0, 0])]
        sampling = SamplingConfig(temperature=config.sample_temperature, seed=config.seed)
        written = [s.tokens[0] for s in generate(self.model, prompt, config.sample_tokens, sampling)]
        shown = tokenizer.decode(prompt) if config.sample_prompt else ""  # else the first token is part of the sample
        text = tokenizer.decode(prompt + written)[len(shown) :]
        return Sampled(self.step, self.seconds, prompt=shown, text=text)

    # ---- saving ----------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Wall time of the run, earlier parts included, the reader's time between two events left out."""
        return self.seconds_before + time.perf_counter() - self.began

    @property
    def keeps(self) -> bool:
        """Whether this process saves the run."""
        return self.folder is not None and self.workers.first

    def _check_alike(self) -> None:
        """Raise ValueError unless all processes begin at the same step, with the same text, settings and weights."""
        weights = b"".join(t.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
                           for t in self.model.state_dict().values())  # fmt: skip
        self.workers.check_alike({
            "text": self.corpus.sha256,
            "settings": repr((self.config, self.model.config)),
            "weights": f"{self.step} {hashlib.sha256(weights).hexdigest()}",
        })  # fmt: skip

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
        if not self.workers.first:  # the saved noise is the first process's
            self.dropout.manual_seed(self.workers.noise_seed(self.config.seed + 1, self.step))
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
        MixtureOfExperts.stay_uncompiled()
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
