"""The feed-forward layer: each token on its own, widened, bent and narrowed again."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .config import ModelConfig
from .fused import squared_relu
from .trace import Tap
from .undrawn import Linear


class FeedForward(nn.Module):
    """d_model → d_ff → nonlinearity → d_model; with swiglu a third matrix gates the hidden layer.

    Squared ReLU is from So et al. 2021 (Primer), SwiGLU from Shazeer 2020.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        d, width, bias = config.d_model, config.ff_width, config.feedforward_bias
        self.up = Linear(d, width, bias=bias)
        if config.activation == "swiglu":
            self.gate = Linear(d, width, bias=bias)
        self.down = Linear(width, d, bias=bias)

    def forward(self, x: torch.Tensor, tap: Tap, layer: int) -> torch.Tensor:
        hidden = tap("ff_hidden", layer, self.hidden(x))  # (B, T, d_ff)
        return tap("ff_out", layer, self.down(hidden))  # (B, T, d)

    def hidden(self, x: torch.Tensor) -> torch.Tensor:
        """The hidden layer (B, T, d_ff) after its nonlinearity."""
        if self.config.activation == "swiglu":
            return F.silu(self.gate(x)) * self.up(x)
        return bend(self.up(x), self.config)


def bend(x: torch.Tensor, config: ModelConfig) -> torch.Tensor:
    """The config's nonlinearity, number by number (all but swiglu, which needs two inputs)."""
    if config.activation == "relu":
        return F.relu(x)
    if config.activation == "relu2":
        return squared_relu(x)
    return F.gelu(x, approximate="tanh" if config.gelu_tanh else "none")
