"""The nonlinearities of the feed-forward layer.

Squared ReLU is from So et al. 2021 (Primer), SwiGLU from Shazeer 2020.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .config import ModelConfig
from .fast.formulas import SquaredReLU
from .fast.quicker import quicker


def activate(config: ModelConfig, x: torch.Tensor, gate: torch.Tensor | None = None) -> torch.Tensor:
    """The config's nonlinearity, number by number; swiglu alone reads a `gate` of the same shape as well."""
    if gate is not None:
        return F.silu(gate) * x
    if config.activation == "relu":
        return F.relu(x)
    if config.activation == "relu2":
        return squared_relu(x)
    return F.gelu(x, approximate=gelu_formula(config))


@quicker(by=SquaredReLU)
def squared_relu(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)², number by number."""
    return F.relu(x).square()


def gelu_formula(config: ModelConfig) -> str:
    """What torch calls the config's GELU: the exact one, or its approximation by a hyperbolic tangent."""
    return "tanh" if config.gelu_tanh else "none"
