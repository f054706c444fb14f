"""The feed-forward layer: each token on its own, widened, bent and narrowed again."""

from __future__ import annotations

import torch
from torch import nn

from .activations import activate
from .config import ModelConfig
from .fast.layers import Linear
from .trace import Tap


class FeedForward(nn.Module):
    """d_model → d_ff → nonlinearity → d_model; with swiglu a third matrix gates the hidden layer."""

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
        gate = self.gate(x) if self.config.activation == "swiglu" else None
        return activate(self.config, self.up(x), gate)
