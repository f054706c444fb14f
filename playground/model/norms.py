"""Normalisation over the last dimension: RMSNorm, or LayerNorm."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .config import ModelConfig
from .fast.formulas import RootMeanSquare
from .fast.layers import LayerNorm
from .fast.quicker import quicker


def make_norm(config: ModelConfig) -> nn.Module:
    """The config's kind of normalisation over d_model."""
    if config.norm == "rmsnorm":
        return RMSNorm(config.d_model, config.norm_eps)
    return LayerNorm(config.d_model, eps=config.norm_eps, bias=config.norm_bias)


class RMSNorm(nn.Module):
    """x (…, width) → the same shape, each vector brought to a mean square of 1, then times a learned gain."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype != self.weight.dtype:  # mixed precision: sums of squares want all digits
            x = x.to(self.weight.dtype)
        return rms_norm(x, self.weight, self.eps)


@quicker(by=RootMeanSquare)
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x / √(mean(x²) + eps) · gain (Zhang and Sennrich 2019)."""
    return F.rms_norm(x, weight.shape, weight, eps)
