"""The learner: one optimizer step, and all that a step changes: weights, what optimizers remember, random states.

B = batch, T = context length, L = mixture layers, E = experts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from ..data.corpus import Corpus
from ..data.ladder import IGNORE
from ..devices import mixed
from ..model import Pass, Transformer
from .config import TrainConfig
from .distributed import Alone
from .gradients import gradient_norms
from .losses import loss_of
from .optimizers import make_optimizers


@dataclass(frozen=True)
class Step:
    """What one step found."""

    loss: float
    """Mean over the step's own targets before the update, in nats per token."""
    gradient_norm: float
    """Length of the whole gradient before clipping."""
    load: torch.Tensor | None
    """(L, E): share of visits that each expert got; None for a dense model."""
    norms: dict[str, float]
    """Length of each part's gradient before clipping; empty unless asked for."""

    @property
    def sound(self) -> bool:
        """Whether it was made: a step that is not a number changes nothing."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient_norm)


class Learner:
    """A model with its optimizers and its random states."""

    def __init__(
        self,
        model: Transformer,
        corpus: Corpus,
        config: TrainConfig,
        device: torch.device,
        dtype: torch.dtype,
        workers: Alone,
    ):
        self.model, self.corpus, self.config = model.to(device), corpus, config
        self.device, self.dtype, self.workers = device, dtype, workers
        self.optimizers = make_optimizers(model, config)
        self.scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
        noise_seed = workers.noise_seed(config.seed + 1, 0)
        self.generators = {
            "batches": torch.Generator().manual_seed(config.seed),
            "dropout": torch.Generator(device).manual_seed(noise_seed),
        }

    def make(self, step: int, forward: Callable, *, measure: bool = False) -> Step:
        """Make step number `step` (from 1); with `measure`, say how long each part's gradient is.

        Raises WorkerLost where another process does not answer; then it is as if the step had not begun.
        """
        states = {name: generator.get_state() for name, generator in self.generators.items()}
        try:
            loss, load = self._gradient(forward)
        except BaseException:
            for name, generator in self.generators.items():
                generator.set_state(states[name])
            self._forget_gradient()
            raise
        for optimizer in self.optimizers:
            self.scaler.unscale_(optimizer)
        norms = gradient_norms(self.model) if measure else {}
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
        if self.config.gradient_clip:
            torch.nn.utils.clip_grads_with_norm_(parameters, self.config.gradient_clip, norm)
        found = Step(loss.item(), norm.item(), load, norms)
        if self.scaler.is_enabled() and not math.isfinite(found.gradient_norm):
            found = replace(found, gradient_norm=0.0)  # fp16 overflowed: a step without an update
        if found.sound:
            self._update(step, load)
        self._forget_gradient()
        return found

    def _gradient(self, forward: Callable) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Give the parameters the gradient of the step's batches, on all processes; returns loss () and load (L, E)."""
        total, loads = torch.zeros((), device=self.device), []
        noisy = self.model.config.dropout or self.model.config.router_noise
        batches, counted = self._batches()
        for x, y in batches:
            with mixed(self.dtype, self.device):
                output = forward(x, Pass(generator=self.generators["dropout"] if noisy else None))
                loss = loss_of(output.logits, y, counted)
            total += loss.detach()
            if output.balance_loss is not None:
                balance, load = self.workers.balance(output, len(x) / self.config.batch_size, self.model.config)
                loss = loss + balance / len(batches)
                loads.append(load)
            self.scaler.scale(loss).backward()
        self.workers.add_up([total, *(p.grad for p in self.model.parameters() if p.grad is not None)])
        return total, torch.stack(loads).mean(dim=0) if loads else None

    def _update(self, step: int, load: torch.Tensor | None) -> None:
        factor = self.config.rate_at(step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * factor
            self.scaler.step(optimizer)  # fp16 skips the update after an overflow and lowers its scale
        self.scaler.update()
        if load is not None:
            self.model.shift_selection(load)

    def _forget_gradient(self) -> None:
        for parameter in self.model.parameters():
            parameter.grad = None

    def _batches(self) -> tuple[list[tuple[torch.Tensor, torch.Tensor]], int | None]:
        """This process's inputs and targets (B, T) for each of the step's forward passes, and how many targets count in
        all passes of all processes; None where there is one pass of one process, whose mean is its own."""
        config, T = self.config, self.model.config.context_length
        whole = [self.corpus.batch("train", config.batch_size, T, self.generators["batches"])
                 for _ in range(config.accumulation)]  # fmt: skip
        counted = sum(int((y != IGNORE).sum()) for _, y in whole) if len(whole) * self.workers.size > 1 else None
        return [tuple(self.workers.rows(part).to(self.device) for part in batch) for batch in whole], counted

    def example(self) -> torch.Tensor:
        """Inputs (B, T) like those of a step, drawn aside, so that the batches to come stay what they are."""
        aside, T = torch.Generator().manual_seed(0), self.model.config.context_length
        return self.workers.rows(self.corpus.batch("train", self.config.batch_size, T, aside)[0]).to(self.device)
