"""One real AdamW step on a sentence, in a copy of the model: every parameter before, its gradient, and after.

On the CPU. Also that step by hand for one weight. T = tokens.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..model import Transformer
from ..training import TrainConfig, loss_of
from ..training.optimizers import make_optimizers

EPSILON = 1e-8
"""Epsilon of torch's AdamW."""


@dataclass(frozen=True)
class StepReport:
    """One step, in full."""

    config: TrainConfig
    """The run's settings, for the learning rate, betas, weight decay and clipping."""
    loss_before: float
    """Mean loss in nats on the sentence's tokens, each predicted from those before it."""
    loss_after: float
    gradient_norm: float
    """Length of the whole gradient, before clipping."""
    clipped: float
    """Factor by which clipping multiplied every gradient; 1 if no clipping was needed."""
    before: dict[str, torch.Tensor]
    gradients: dict[str, torch.Tensor]
    """Parameter → gradient after clipping: what the optimizer saw."""
    after: dict[str, torch.Tensor]
    decays: dict[str, float]
    """Parameter → its weight decay; none for norms and biases."""

    def step(self, name: str) -> torch.Tensor:
        """How far the step moved each weight of the tensor `name`."""
        return self.after[name] - self.before[name]


def optimizer_step(model: Transformer, ids: Sequence[int], config: TrainConfig) -> StepReport:
    """Teach a copy of the model these ids once: forward, loss, backward, clip, step. The model itself is left alone.

    It is the first step of a fresh AdamW, with the run's settings and peak learning rate, and without a real run's
    memory of earlier gradients. The ids are at least two.
    """
    learner = copy.deepcopy(model).cpu()
    for parameter in learner.parameters():
        parameter.requires_grad_(True)
        parameter.grad = None
    text = torch.tensor([list(ids)])
    inputs, targets = text[:, :-1], text[:, 1:]
    before = _copies(learner)

    with torch.enable_grad():
        output = learner(inputs)
        loss = loss_of(output.logits, targets)
        (loss if output.balance_loss is None else loss + output.balance_loss).backward()
    reached = [parameter for parameter in learner.parameters() if parameter.grad is not None]
    norm, clip = torch.nn.utils.get_total_norm([parameter.grad for parameter in reached]), config.gradient_clip
    if clip:
        torch.nn.utils.clip_grads_with_norm_(reached, clip, norm)
    # an expert that no token visited has no gradient
    gradients = {
        name: torch.zeros_like(p) if p.grad is None else p.grad.detach().clone()
        for name, p in learner.named_parameters()
    }
    (optimizer,) = make_optimizers(learner, config.replace(optimizer="adamw"))
    optimizer.step()
    names, groups = {id(each): name for name, each in learner.named_parameters()}, optimizer.param_groups
    decays = {names[id(each)]: group["weight_decay"] for group in groups for each in group["params"]}
    with torch.no_grad():
        loss_after = loss_of(learner(inputs).logits, targets).item()
    return StepReport(
        config=config,
        loss_before=loss.item(),
        loss_after=loss_after,
        gradient_norm=norm.item(),
        clipped=min(1.0, clip / (norm.item() + 1e-6)) if clip else 1.0,
        before=before,
        gradients=gradients,
        after=_copies(learner),
        decays=decays,
    )


def _copies(model: Transformer) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def first_adamw_step(
    weight: float, gradient: float, rate: float, beta1: float, beta2: float, decay: float
) -> dict[str, float]:
    """The first step of AdamW (Loshchilov and Hutter 2019) for one weight, in float64.

    Both averages start at 0 and are corrected for that, so the first corrected averages are the gradient and its
    square. Whatever the gradient's size, the weight moves by about the learning rate.
    """
    m, v = (1 - beta1) * gradient, (1 - beta2) * gradient**2
    m_corrected, v_corrected = m / (1 - beta1), v / (1 - beta2)
    move = -rate * m_corrected / (math.sqrt(v_corrected) + EPSILON)
    shrink = -rate * decay * weight
    after = weight + shrink + move
    return {"m_corrected": m_corrected, "v_corrected": v_corrected, "shrink": shrink, "move": move, "after": after}
