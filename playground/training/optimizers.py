"""Optimizers: AdamW for everything, or Muon for the matrices inside the blocks and AdamW for the rest."""

from __future__ import annotations

import inspect
import math
from collections import defaultdict

import torch
from torch import nn

from ..devices import has_fast_bf16
from .config import TrainConfig

# Quintic polynomial whose iteration pushes all singular values towards 1 (Jordan et al. 2024, "Muon").
_A, _B, _C = 3.4445, -4.7750, 2.0315
NEWTON_SCHULZ_STEPS = 5


class AdamW(torch.optim.AdamW):
    """torch's own, stepping without the wrapper that imports torch's compiler."""

    @torch.no_grad()
    def step(self, closure=None):
        return inspect.unwrap(torch.optim.AdamW.step)(self, closure)


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal (Jordan et al. 2024), for matrices (n, m) and stacks of them (E, n, m).

    The same update as `torch.optim.Muon`, but all matrices of one shape go through the Newton–Schulz iteration as one
    batch, and in fp32 where the processor has no bfloat16.
    """

    def __init__(self, params, lr: float = 0.02, momentum: float = 0.95, weight_decay: float = 0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            alike: dict[tuple[int, int], list[tuple[torch.Tensor, torch.Tensor]]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(parameter)
                momentum = state["momentum"]
                momentum.lerp_(parameter.grad, 1 - group["momentum"])
                update = parameter.grad.lerp(momentum, group["momentum"])  # Nesterov
                alike[tuple(sorted(parameter.shape[-2:]))].append((parameter, update))
            for members in alike.values():
                self._update(members, group["lr"], group["weight_decay"])

    @staticmethod
    def _update(members: list[tuple[torch.Tensor, torch.Tensor]], lr: float, weight_decay: float) -> None:
        wide = [u.mT if u.shape[-2] > u.shape[-1] else u for _, u in members]
        stack = torch.cat([u.reshape(-1, *u.shape[-2:]) for u in wide])  # (matrices, n, m), n ≤ m
        done = orthogonalise(stack).split([u.numel() // (u.shape[-1] * u.shape[-2]) for u in wide])
        for (parameter, _), update in zip(members, done):
            n, m = parameter.shape[-2:]
            tall = n > m
            update = (update.mT if tall else update).reshape(parameter.shape)
            # torch keeps weights as (out, in); stacks of experts are (in, out)
            out_features, in_features = (n, m) if parameter.ndim == 2 else (m, n)
            parameter.mul_(1 - lr * weight_decay)
            parameter.add_(update, alpha=-lr * math.sqrt(max(1.0, out_features / in_features)))


def orthogonalise(stack: torch.Tensor, steps: int = NEWTON_SCHULZ_STEPS) -> torch.Tensor:
    """Matrices (…, n, m), n ≤ m, with their singular values brought near 1 by Newton–Schulz iterations."""
    x = stack.bfloat16() if has_fast_bf16(stack.device) else stack.float()
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    wide = x.shape[-1] >= 2 * x.shape[-2]
    # bfloat16 has too few digits for the square of a matrix to stand for it
    x = _orthogonalise_wide(x, steps) if wide and x.dtype == torch.float32 else _orthogonalise(x, steps)
    return x.to(stack.dtype)


def _orthogonalise(x: torch.Tensor, steps: int) -> torch.Tensor:
    """`steps` times x ← (A + B·G + C·G²)·x, where G = x·xᵀ."""
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, _polynomial(gram), x, beta=_A)
    return x


def _orthogonalise_wide(x: torch.Tensor, steps: int) -> torch.Tensor:
    """The same, with products of (n, n) only: every step multiplies x from the left, so the factors are gathered first.

    A step with factor Q turns G = x·xᵀ into Q·G·Q, since both are polynomials of the first G: symmetric, and commuting.
    """
    gram, gathered = x @ x.mT, None
    for step in range(steps):
        factor = _polynomial(gram)
        factor.diagonal(dim1=-2, dim2=-1).add_(_A)
        gathered = factor if gathered is None else factor @ gathered
        if step < steps - 1:
            gram = factor @ gram @ factor
    return x if gathered is None else gathered @ x


def _polynomial(gram: torch.Tensor) -> torch.Tensor:
    """B·G + C·G²."""
    return torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C)


def _leave_the_compiler_alone() -> None:
    """Spare optimizers the import of torch's compiler: 2.5 seconds and 76 MB to say that it shall not compile them.

    torch keeps what its compiler says about a method in an attribute of the method, and asks where there is none. The
    compiler never sees an optimizer here, only models.
    """
    for method in vars(torch.optim.Optimizer).values():
        plain = getattr(method, "__wrapped__", None)
        if plain is not None and not hasattr(plain, "__dynamo_disable"):
            plain.__dynamo_disable = plain


def make_optimizers(model: nn.Module, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """The run's optimizers; each group remembers its peak rate as `peak_lr`. Norms and biases do not decay."""
    _leave_the_compiler_alone()
    matrices, decaying, others = [], [], []
    for name, parameter in model.named_parameters():
        if name.startswith("blocks.") and parameter.ndim >= 2 and not name.endswith("bias"):
            (matrices if config.optimizer == "muon" else decaying).append(parameter)
        elif parameter.ndim >= 2 and not name.endswith("bias"):
            decaying.append(parameter)
        else:
            others.append(parameter)
    groups = [{"params": decaying, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    betas = (config.beta1, config.beta2)
    optimizers: list[torch.optim.Optimizer] = [
        AdamW([g for g in groups if g["params"]], lr=config.learning_rate, betas=betas, fused=True)
    ]
    if matrices:
        rate, momentum = config.muon_learning_rate, config.muon_momentum
        optimizers.append(Muon(matrices, lr=rate, momentum=momentum, weight_decay=config.weight_decay))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return optimizers
