"""Gradients: of a selection's log-probability, of single examples, and how a small step along one changes every token.

The product of a gradient with those of all passages needs none of theirs: it is how much the log-probability of their
tokens changes along it. That takes two forward passes, of the model moved a little to either side.

N = windows, T = tokens of a window.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy

from ..data.baselines import IGNORE
from ..data.corpus import real_tokens
from ..model import Pass, Recorder, Tap, Transformer, no_tap
from ..training.losses import Interrupted, token_losses

Gradient = dict[str, torch.Tensor]
"""A number for each of a model's, by the names of its parameters."""
RISE, FARTHEST = 0.05, 0.01
"""A step is so long that the selection's log-probability should rise by so many nats, and no longer than this part of
the length of all weights."""
AT_ONCE = 32
"""Windows that go through the model together."""


def selection_windows(
    ids: list[int], first: int, context_length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs, targets, and which targets count (N, T): each token of ids[first:] counts once.

    Before each of them, the model sees at least half a context, or all tokens that there are.
    """
    T, n = context_length, len(ids)
    inputs, targets, counts = [], [], []
    start, done = max(min(first - T // 2, n - 1 - T), 0), first
    while done < n:
        end = min(start + T, n - 1)  # of the inputs
        padding = T - (end - start)
        inputs.append(ids[start:end] + [0] * padding)
        targets.append(ids[start + 1 : end + 1] + [IGNORE] * padding)
        counts.append([start + 1 + i >= done for i in range(end - start)] + [False] * padding)
        done, start = end + 1, max(end + 1 - T // 2, 0)
    return torch.tensor(inputs), torch.tensor(targets), torch.tensor(counts)


def log_probability(model: Transformer, ids: list[int], first: int) -> float:
    """Of the tokens ids[first:] after those before, in nats."""
    inputs, targets, counts = selection_windows(ids, first, model.config.context_length)
    return -float(token_losses(model, inputs, targets)[counts].double().sum())


def loss_gradient(
    model: Transformer, inputs: torch.Tensor, targets: torch.Tensor, counts: torch.Tensor | None = None
) -> Gradient:
    """Gradient of the loss of windows (N, T), summed over their tokens, or over those that count (N, T)."""
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    logits = model(inputs, Pass(mask=real_tokens(targets))).logits.flatten(0, 1)
    wanted = targets if counts is None else targets.masked_fill(~counts, IGNORE)
    loss = cross_entropy(logits, wanted.flatten().to(logits.device), ignore_index=IGNORE, reduction="sum")
    found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return {name: torch.zeros_like(p) if g is None else g for (name, p), g in zip(parameters.items(), found)}


def selection_gradient(model: Transformer, ids: list[int], first: int) -> Gradient:
    """Gradient of the log-probability of the tokens ids[first:]."""
    found = loss_gradient(model, *selection_windows(ids, first, model.config.context_length))
    return {name: -g for name, g in found.items()}


def product(a: Gradient, b: Gradient) -> float:
    """Their dot product."""
    return float(sum((a[name].double() * b[name].double()).sum() for name in a))


def step_length(model: Transformer, gradient: Gradient, direction: Gradient) -> float:
    """How far to go along a direction so that what the gradient is of changes by RISE, but not FARTHEST."""
    length, weights = math.sqrt(product(direction, direction)), dict(model.named_parameters())
    if not length:
        return 0.0
    farthest = (
        FARTHEST * math.sqrt(sum(float(weights[name].detach().double().square().sum()) for name in direction)) / length
    )
    slope = abs(product(gradient, direction))
    return min(RISE / slope, farthest) if slope else farthest


def changes_along(
    model: Transformer,
    direction: Gradient,
    step: float,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> torch.Tensor:
    """The slope of each target's log-probability (N, T) along a direction, by a central difference of this step.

    Raises Interrupted.
    """
    if not step:
        return torch.zeros(targets.shape)
    sides = []
    for sign in (1, -1):
        moved = copy.deepcopy(model)
        with torch.no_grad():
            for name, parameter in moved.named_parameters():
                if name in direction:
                    parameter.add_(direction[name], alpha=sign * step)
        sides.append(moved)
    found = []
    for x, y in zip(inputs.split(AT_ONCE), targets.split(AT_ONCE)):
        if should_stop():
            raise Interrupted("stopped")
        tap = _same_experts(model, x, y) if model.config.n_experts else no_tap
        losses = [token_losses(side, x, y, tap=tap) for side in sides]
        found.append((losses[1] - losses[0]) / (2 * step))
    return torch.cat(found) if found else torch.zeros(targets.shape)


def _same_experts(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor) -> Tap:
    """A tap that sends each token to the experts that the model itself chooses: a gradient knows no other choice."""
    recorder = Recorder(["experts"])
    token_losses(model, inputs, targets, tap=recorder)
    return lambda name, layer, x: recorder.trace[name, layer] if name == "experts" else x
