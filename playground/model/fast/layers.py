"""torch's own layers, less what they do for nothing here."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .halves import Product, in_halves
from .quicker import quicker


class Linear(nn.Linear):
    """torch's linear layer, its memory left as it was found: `Transformer.initialise` draws all weights anew.

    Nothing is drawn twice; and a model that is built for its shapes alone, on torch's meta device, does not make torch
    load its compiler, which takes seconds.
    """

    def reset_parameters(self) -> None:
        pass

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if in_halves(x):
            return linear(x, self.weight, self.bias)
        return F.linear(x, self.weight, self.bias)


@quicker(by=Product)
def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x (…, n) · weightᵀ + bias: (…, m), weight being (m, n)."""
    return F.linear(x, weight, bias)


class Embedding(nn.Embedding):
    """torch's embedding, its memory left as it was found, for the same reasons."""

    def reset_parameters(self) -> None:
        pass


class LayerNorm(nn.LayerNorm):
    """Layer normalisation (Ba et al. 2016), called without the detour that takes half the time of a single token's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
