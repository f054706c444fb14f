"""The nonlinearities of the feed-forward layer, each with its gradient beside it.

Squared ReLU is from So et al. 2021 (Primer), SwiGLU from Shazeer 2020.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .config import ModelConfig
from .fused import squared_relu


def activate(config: ModelConfig, x: torch.Tensor, gate: torch.Tensor | None = None) -> torch.Tensor:
    """The config's nonlinearity, number by number; swiglu alone reads a `gate` of the same shape as well."""
    if gate is not None:
        return F.silu(gate) * x
    if config.activation == "relu":
        return F.relu(x)
    if config.activation == "relu2":
        return squared_relu(x)
    return F.gelu(x, approximate=_formula(config))


def activation_gradient(
    config: ModelConfig, grad: torch.Tensor, x: torch.Tensor, gate: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What `grad`, the gradient of `activate`'s result, is for x and for the gate. Writes over `grad`."""
    if gate is not None:
        to_gate = torch.ops.aten.silu_backward(grad * x, gate)
        return grad.mul_(F.silu(gate)), to_gate
    if config.activation == "relu":
        return grad.mul_(x > 0), None
    if config.activation == "relu2":
        return grad.mul_(F.relu(x)).mul_(2), None
    return torch.ops.aten.gelu_backward.grad_input(grad, x, approximate=_formula(config), grad_input=grad), None


def _formula(config: ModelConfig) -> str:
    return "tanh" if config.gelu_tanh else "none"
