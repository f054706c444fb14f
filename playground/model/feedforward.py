"""The feed-forward layer: each token on its own, widened, bent and narrowed again."""

from __future__ import annotations

import torch
from torch import nn

from .activations import activate
from .config import ModelConfig
from .fast.bare import does_more
from .fast.halves import Thought, in_halves
from .fast.layers import Linear, linear
from .fast.quicker import quicker
from .trace import Tap, no_tap


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
        if tap is no_tap and in_halves(x) and all(type(m) is Linear and not does_more(m) for m in self.children()):
            layers = self.up, getattr(self, "gate", None), self.down
            weights = (None if each is None else each.weight for each in layers)
            biases = (None if each is None else each.bias for each in layers)
            return think(x, self.config, *weights, *biases)
        hidden = tap("ff_hidden", layer, self.hidden(x))  # (B, T, d_ff)
        return tap("ff_out", layer, self.down(hidden))  # (B, T, d)

    def hidden(self, x: torch.Tensor) -> torch.Tensor:
        """The hidden layer (B, T, d_ff) after its nonlinearity."""
        gate = self.gate(x) if self.config.activation == "swiglu" else None
        return activate(self.config, self.up(x), gate)


@quicker(by=Thought)
def think(
    x: torch.Tensor,
    config: ModelConfig,
    up: torch.Tensor,
    gate: torch.Tensor | None,
    down: torch.Tensor,
    up_bias: torch.Tensor | None,
    gate_bias: torch.Tensor | None,
    down_bias: torch.Tensor | None,
) -> torch.Tensor:
    """The whole layer (B, T, d) of x (B, T, d); what is not there is None."""
    gates = None if gate is None else linear(x, gate, gate_bias)
    return linear(activate(config, linear(x, up, up_bias), gates), down, down_bias)
