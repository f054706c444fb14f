"""Losses: cross-entropy in nats: a batch's, that of each of many windows, and the mean over all of them.

The model and the windows may be on different devices. All losses but a batch's are on the CPU.

N = windows, T = tokens per window, V = vocabulary. Targets that are IGNORE do not count anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from ..data.baselines import IGNORE
from ..data.corpus import real_tokens
from ..model import ModelConfig, Pass, Tap, Transformer, no_tap

WINDOWS_AT_ONCE, LOGITS_AT_ONCE = 64, 1 << 26
"""Windows that go through the model together, and the most next-token scores that they may produce."""


def windows_at_once(config: ModelConfig) -> int:
    """The number of windows that a model of this config reads in one pass."""
    return min(WINDOWS_AT_ONCE, max(LOGITS_AT_ONCE // (config.context_length * config.vocab_size), 1))


def loss_of(logits: torch.Tensor, targets: torch.Tensor, counted: int | None = None) -> torch.Tensor:
    """Mean cross-entropy of logits (N, T, V) against targets (N, T), to learn from.

    If these are only some of a batch's rows, `counted` says how many targets the whole batch has. The result is then
    their part of its mean.
    """
    logits, targets = logits.flatten(0, 1).float(), targets.flatten().to(logits.device)
    if counted is None:
        return F.cross_entropy(logits, targets, ignore_index=IGNORE)
    return F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum") / counted


class Interrupted(Exception):
    """An evaluation was stopped before its end."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason
        """Why the run should end."""


@dataclass(frozen=True)
class WindowLosses:
    """One model's loss on each of many windows."""

    total: torch.Tensor
    """(N,) nats, summed over the window's counted tokens."""
    tokens: torch.Tensor
    """(N,) how many tokens counted."""

    @property
    def mean(self) -> float:
        """Nats per counted token."""
        return (self.total.sum() / self.tokens.sum().clamp(min=1)).item()


@torch.no_grad()
def window_losses(
    model: Transformer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    *,
    tap: Tap = no_tap,
    at_once: int | None = None,
    should_stop: Callable[[], str] = lambda: "",
) -> WindowLosses:
    """A model's loss on each of the windows (N, T), in the precision of its weights, with `tap`'s changes.

    Calls `should_stop` between passes, and raises Interrupted if it gives a reason.
    """
    totals = [torch.zeros(0, dtype=torch.float64)]
    at_once = at_once or windows_at_once(model.config)
    for x, y in zip(inputs.split(at_once), targets.split(at_once)) if len(inputs) else ():
        if len(totals) > 1 and (reason := should_stop()):
            raise Interrupted(reason)
        logits = model(x, Pass(tap=tap, mask=real_tokens(y))).logits
        totals.append(summed_losses(logits, y))
    return WindowLosses(torch.cat(totals), (targets != IGNORE).sum(dim=1).cpu())


@torch.no_grad()
def token_losses(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor, *, tap: Tap = no_tap) -> torch.Tensor:
    """The model's loss on each target (N, T), in nats, with `tap`'s changes; 0 where a target does not count."""
    return _per_token(model(inputs, Pass(tap=tap, mask=real_tokens(targets))).logits, targets)


def summed_losses(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Each window's loss (N,), summed over its tokens in float64, from logits (N, T, V) and targets (N, T)."""
    return _per_token(logits, targets).sum(dim=1, dtype=torch.float64)


def _per_token(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    logits, wanted = logits.flatten(0, 1).float(), targets.flatten().to(logits.device)
    losses = F.cross_entropy(logits, wanted, ignore_index=IGNORE, reduction="none")
    return losses.unflatten(0, targets.shape).cpu()


def evaluate(
    model: Transformer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    should_stop: Callable[[], str] = lambda: "",
) -> float:
    """Mean loss in nats per counted token over windows (N, T). Raises Interrupted as `window_losses` does."""
    return window_losses(model, inputs, targets, should_stop=should_stop).mean
