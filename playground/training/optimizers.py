"""Optimizers: AdamW for everything, or Muon for the matrices inside the blocks and AdamW for the rest."""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import ClassVar

import torch
from torch import nn

from ..devices import has_fast_bf16
from ..model import Transformer
from .config import TrainConfig

# Quintic polynomial whose iteration pushes all singular values towards 1 (Jordan et al. 2024, "Muon").
_A, _B, _C = 3.4445, -4.7750, 2.0315
NEWTON_SCHULZ_STEPS = 5


class _NeverCompiled(torch.optim.Optimizer):
    """An optimizer with torch's own methods, but without the wrapper that keeps torch's compiler away from them.

    To do so, that wrapper imports the compiler: 2.5 seconds and 76 MB. Here the compiler never sees an optimizer,
    only models.
    """

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)

    MEMORY: ClassVar[tuple[str, ...]]
    """What is remembered for each parameter. All but `step`, a number, have the parameter's shape."""


class AdamW(_NeverCompiled, torch.optim.AdamW):
    """`torch.optim.AdamW` (Loshchilov and Hutter 2019), never compiled: the same numbers to the last bit."""

    MEMORY = ("step", "exp_avg", "exp_avg_sq")

    @torch.no_grad()
    def step(self, closure=None):
        return inspect.unwrap(torch.optim.AdamW.step)(self, closure)


class Muon(_NeverCompiled):
    """Momentum whose update is made orthogonal (Jordan et al. 2024), for matrices (n, m) and stacks of them (E, n, m).

    The same update as `torch.optim.Muon`, but all matrices of one shape go through the Newton–Schulz iteration as one
    batch, in fp32 if the CPU has no bfloat16. A parameter may be several matrices stacked below one another:
    `parts` says for each of `params` how many (default: one).
    """

    MEMORY = ("momentum",)

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        parts: Sequence[int] | None = None,
    ):
        params = list(params)
        group = {"params": params, "parts": list(parts) if parts is not None else [1] * len(params)}
        super().__init__([group], {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            learning = [(p, parts) for p, parts in zip(group["params"], group["parts"]) if p.grad is not None]
            if not learning:
                continue
            gradients, momenta = [p.grad for p, _ in learning], []
            for parameter, _ in learning:
                state = self.state[parameter]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(parameter)
                momenta.append(state["momentum"])
            torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
            updates = torch._foreach_lerp(gradients, momenta, group["momentum"])  # Nesterov
            torch._foreach_mul_([p for p, _ in learning], 1 - group["lr"] * group["weight_decay"])
            alike: dict[tuple[int, int], list[tuple[torch.Tensor, torch.Tensor]]] = defaultdict(list)
            for (parameter, parts), update in zip(learning, updates):
                update = update if update.ndim == 3 else update.unflatten(0, (parts, -1))
                alike[tuple(sorted(update.shape[1:]))].append((parameter, update))
            for members in alike.values():
                self._update(members, group["lr"])

    @staticmethod
    def _update(members: list[tuple[torch.Tensor, torch.Tensor]], lr: float) -> None:
        wide = [u.mT if u.shape[1] > u.shape[2] else u for _, u in members]
        lengths = [len(u) for u in wide]
        dtype = torch.bfloat16 if has_fast_bf16(wide[0].device) else torch.float32
        stack = wide[0].new_empty(sum(lengths), *wide[0].shape[1:], dtype=dtype)
        for place, u in zip(stack.split(lengths), wide):
            place.copy_(u)  # turned and cast in one pass
        done = orthogonalise(stack).split(lengths)  # of (matrices, n, m), n ≤ m
        for (parameter, update), turned in zip(members, done):
            n, m = update.shape[1:]
            # torch keeps weights as (out, in); stacks of experts are (in, out)
            out_features, in_features = (n, m) if parameter.ndim == 2 else (m, n)
            turned = (turned.mT if n > m else turned).reshape(parameter.shape)
            parameter.add_(turned, alpha=-lr * math.sqrt(max(1.0, out_features / in_features)))


def orthogonalise(stack: torch.Tensor) -> torch.Tensor:
    """Matrices (…, n, m), n ≤ m, with their singular values brought near 1 by Newton–Schulz iterations: x ← (A + B·G +
    C·G²)·x, where G = x·xᵀ.

    In bfloat16, directions weaker than the rounding error of the strongest one become noise.
    """
    x = stack / stack.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    # bfloat16 has too few digits for the square of a matrix to stand for it
    if x.shape[-1] >= 2 * x.shape[-2] and x.dtype != torch.bfloat16:
        return _orthogonalise_wide(x)
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, _polynomial(gram), x, beta=_A)
    return x


def _orthogonalise_wide(x: torch.Tensor) -> torch.Tensor:
    """The same, with (n, n) products only: every step multiplies x from the left, so the factors are multiplied first.

    A step with factor Q turns G = x·xᵀ into Q·G·Q, since both are polynomials of the first G: symmetric, and commuting.
    """
    gram, gathered = x @ x.mT, None
    for step in range(NEWTON_SCHULZ_STEPS):
        factor = _polynomial(gram)
        factor.diagonal(dim1=-2, dim2=-1).add_(_A)
        gathered = factor if gathered is None else factor @ gathered
        if step < NEWTON_SCHULZ_STEPS - 1:
            gram = factor @ gram @ factor
    return gathered @ x


def _polynomial(gram: torch.Tensor) -> torch.Tensor:
    """B·G + C·G²."""
    return torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C)


def make_optimizers(model: Transformer, config: TrainConfig) -> list[_NeverCompiled]:
    """Make the run's optimizers; each group remembers its peak rate as `peak_lr`. Norms and biases do not decay."""
    matrices, parts, decaying, others = [], [], [], []
    for name, parameter in model.named_parameters():
        bias = name.endswith("bias")
        if config.optimizer == "muon" and name.startswith("blocks.") and parameter.ndim >= 2 and not bias:
            matrices.append(parameter)
            # every head's queries, keys and values apart: measured better than as one matrix, or three
            parts.append(len(parameter) // model.config.d_head if name.endswith("attention.qkv.weight") else 1)
        elif parameter.ndim >= 2 and not bias:
            decaying.append(parameter)
        else:
            others.append(parameter)
    groups = [{"params": decaying, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    betas = (config.beta1, config.beta2)
    optimizers: list[_NeverCompiled] = [
        AdamW([g for g in groups if g["params"]], lr=config.learning_rate, betas=betas, fused=True)
    ]
    if matrices:
        rate, momentum = config.muon_learning_rate, config.muon_momentum
        optimizers.append(Muon(matrices, rate, momentum, config.weight_decay, parts))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return optimizers


def gradient_norms(model: Transformer) -> dict[str, float]:
    """Length of the gradient of each part of the model: embedding, every block's attention and feed-forward, head."""
    squares: dict[str, float] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            where = name.split(".")
            part = f"{where[1]} {where[2].removesuffix('_norm')}" if where[0] == "blocks" else where[0]
            squares[part] = squares.get(part, 0.0) + float(parameter.grad.float().square().sum())
    return {part: math.sqrt(total) for part, total in squares.items()}
