"""One real optimizer step on a sentence, in a copy of the model: every parameter before, its gradient, and after.

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
from ..training.optimizers import SGD, Muon, make_optimizers

RULES = ("adamw", "muon", "sgd")
SGD_RATE = 0.1
"""Learning rate of plain gradient descent, which no run here uses."""
EPSILON = 1e-8
"""Epsilon of torch's AdamW."""


@dataclass(frozen=True)
class StepReport:
    """One step, in full."""

    learning_rates: dict[str, float]
    """Optimizer → its peak learning rate, which a run uses after its warm-up."""
    config: TrainConfig
    """The run's settings, for betas, weight decay and clipping."""
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
    rules: dict[str, str]
    """Parameter → the optimizer that moved it, by the same names."""
    decays: dict[str, float]
    """Parameter → its weight decay; none for norms and biases, none under SGD."""

    def step(self, name: str) -> torch.Tensor:
        """How far the step moved each weight of the tensor `name`."""
        return self.after[name] - self.before[name]


def optimizer_step(
    model: Transformer, ids: Sequence[int], config: TrainConfig | None = None, rule: str | None = None
) -> StepReport:
    """Teach a copy of the model these ids once: forward, loss, backward, clip, step. The model itself is left alone.

    It is the very first step of a fresh optimizer, with the run's settings and peak learning rates, and without a real
    run's memory of earlier gradients. `rule` (adamw; muon for the matrices inside the blocks, with AdamW for the rest;
    or sgd) overrides how the model was trained. Raises ValueError for a text with nothing to predict.
    """
    config = config or TrainConfig()
    rule = rule or config.optimizer
    if rule not in RULES:
        raise ValueError(f"there is no optimizer {rule!r} here; choose one of {', '.join(RULES)}")
    if len(ids) < 2:
        raise ValueError("a single token has nothing after it to learn from: type at least two")
    if len(ids) > model.config.context_length + 1:
        raise ValueError(f"{len(ids)} tokens are more than the context of {model.config.context_length} and one more")
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
    if rule == "sgd":
        optimizers = [SGD(learner.parameters(), lr=SGD_RATE)]
    else:
        optimizers = make_optimizers(learner, config.replace(optimizer=rule))
    names = {id(parameter): name for name, parameter in learner.named_parameters()}
    rules, decays = {}, {}
    for optimizer in optimizers:
        optimizer.step()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                rules[names[id(parameter)]] = _rule_of(optimizer)
                decays[names[id(parameter)]] = group["weight_decay"]
    with torch.no_grad():
        loss_after = loss_of(learner(inputs).logits, targets).item()
    return StepReport(
        learning_rates={_rule_of(optimizer): optimizer.param_groups[0]["lr"] for optimizer in optimizers},
        config=config,
        loss_before=loss.item(),
        loss_after=loss_after,
        gradient_norm=norm.item(),
        clipped=min(1.0, clip / (norm.item() + 1e-6)) if clip else 1.0,
        before=before,
        gradients=gradients,
        after=_copies(learner),
        rules=rules,
        decays=decays,
    )


def _copies(model: Transformer) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def _rule_of(optimizer: torch.optim.Optimizer) -> str:
    return "muon" if isinstance(optimizer, Muon) else "sgd" if isinstance(optimizer, SGD) else "adamw"


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
