"""One real optimizer step on a sentence, on a copy of the model: every parameter before, its gradient, and after.

T = tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..model import Transformer
from ..training import TrainConfig, loss_of
from ..training.optimizers import Muon, gradient_norms, make_optimizers

WAYS = ("adamw", "muon", "sgd")
SGD_RATE = 0.1


@dataclass(frozen=True)
class Changed:
    """What the step did to one parameter."""

    name: str
    shape: tuple[int, ...]
    count: int
    """Trainable numbers in it."""
    share: float
    """Of all trainable numbers, 0 … 1."""
    rule: str
    """adamw, muon or sgd: what moved it."""
    weight_norm: float
    gradient_norm: float
    step_norm: float


@dataclass(frozen=True)
class StepReport:
    """One step, in full."""

    rule: str
    """adamw, muon (for the matrices inside the blocks, AdamW for the rest) or sgd."""
    learning_rates: dict[str, float]
    """By rule: the peak rates, which is what a run uses after its warm-up."""
    config: TrainConfig
    """Its betas, weight decay and clipping."""
    loss_before: float
    """Mean loss in nats of the sentence's tokens, each predicted from those before it."""
    loss_after: float
    gradient_norm: float
    """Length of the whole gradient, before clipping."""
    clipped: float
    """Factor that clipping put on every gradient; 1 where there was none to do."""
    had_gradients: bool
    """Whether any parameter had a gradient before the backward pass; it has none."""
    norms: dict[str, float]
    """Length of the gradient by part of the model, before clipping."""
    before: dict[str, torch.Tensor]
    gradients: dict[str, torch.Tensor]
    """After clipping: what the optimizer saw."""
    after: dict[str, torch.Tensor]
    rules: dict[str, str]
    """Parameter → what moved it."""

    def step(self, name: str) -> torch.Tensor:
        """After minus before."""
        return self.after[name] - self.before[name]

    def table(self) -> list[Changed]:
        """Every parameter, in the order of the model."""
        total = sum(tensor.numel() for tensor in self.before.values())
        return [
            Changed(
                name,
                tuple(tensor.shape),
                tensor.numel(),
                tensor.numel() / total,
                self.rules[name],
                tensor.norm().item(),
                self.gradients[name].norm().item(),
                self.step(name).norm().item(),
            )
            for name, tensor in self.before.items()
        ]


def optimizer_step(
    model: Transformer, ids: Sequence[int], config: TrainConfig | None = None, rule: str | None = None
) -> StepReport:
    """Teach a copy of the model these ids once: forward, loss, backward, clip, step. The model itself is left alone.

    The step is the very first of a fresh optimizer with the run's settings and its peak learning rates; what a real
    run remembers of earlier gradients is gone with it. `rule` overrides how the model was trained. Raises ValueError
    for a text without anything to predict.
    """
    config = config or TrainConfig()
    rule = rule or config.optimizer
    if rule not in WAYS:
        raise ValueError(f"there is no optimizer {rule!r} here; choose one of {', '.join(WAYS)}")
    if len(ids) < 2:
        raise ValueError("a single token has nothing after it to learn from: type at least two")
    if len(ids) > model.config.context_length + 1:
        raise ValueError(f"{len(ids)} tokens are more than the context of {model.config.context_length} and one more")
    learner = copy.deepcopy(model)
    for parameter in learner.parameters():
        parameter.requires_grad_(True)
        parameter.grad = None
    text = torch.tensor([list(ids)])
    inputs, targets = text[:, :-1], text[:, 1:]
    before = {name: parameter.detach().clone() for name, parameter in learner.named_parameters()}
    had_gradients = any(parameter.grad is not None for parameter in learner.parameters())

    with torch.enable_grad():
        output = learner(inputs)
        loss = loss_of(output.logits, targets)
        (loss if output.balance_loss is None else loss + output.balance_loss).backward()
    norms = gradient_norms(learner)
    reached = [parameter for parameter in learner.parameters() if parameter.grad is not None]
    norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in reached])
    if config.gradient_clip:
        torch.nn.utils.clip_grads_with_norm_(reached, config.gradient_clip, norm)
    # an expert that no token visited has no gradient
    gradients = {
        name: torch.zeros_like(p) if p.grad is None else p.grad.detach().clone()
        for name, p in learner.named_parameters()
    }
    optimizers = _optimizers(learner, config, rule)
    moved_by = {
        id(p): _rule_of(optimizer)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for p in group["params"]
    }
    for optimizer in optimizers:
        optimizer.step()
    with torch.no_grad():
        loss_after = loss_of(learner(inputs).logits, targets).item()
    clip = config.gradient_clip
    return StepReport(
        rule=rule,
        learning_rates={_rule_of(optimizer): optimizer.param_groups[0]["lr"] for optimizer in optimizers},
        config=config,
        loss_before=loss.item(),
        loss_after=loss_after,
        gradient_norm=norm.item(),
        clipped=min(1.0, clip / (norm.item() + 1e-6)) if clip else 1.0,
        had_gradients=had_gradients,
        norms=norms,
        before=before,
        gradients=gradients,
        after={name: parameter.detach().clone() for name, parameter in learner.named_parameters()},
        rules={name: moved_by[id(parameter)] for name, parameter in learner.named_parameters()},
    )


def _optimizers(model: Transformer, config: TrainConfig, rule: str) -> list[torch.optim.Optimizer]:
    if rule == "sgd":
        return [torch.optim.SGD(model.parameters(), lr=SGD_RATE)]
    return make_optimizers(model, config.replace(optimizer=rule))


def _rule_of(optimizer: torch.optim.Optimizer) -> str:
    return "muon" if isinstance(optimizer, Muon) else "sgd" if isinstance(optimizer, torch.optim.SGD) else "adamw"
