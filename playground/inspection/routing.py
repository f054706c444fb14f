"""Routing: which experts every token of a text visits in every layer, and how much each counts.

B = batch, T = tokens, L = layers with experts, E = experts, K = experts per token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..model import ModelConfig, Pass, Tap, Transformer, no_tap

AT_ONCE = 16
"""Windows that go through the model together."""


@dataclass(frozen=True, eq=False)
class RoutedText:
    """Where a model sent every token of a text. All tensors are on the CPU, without gradients."""

    layers: tuple[int, ...]
    """The L blocks that have experts, counted from 0."""
    n_experts: int
    """E."""
    experts: torch.Tensor
    """(L, B, T, K) the experts visited, the heaviest first."""
    weights: torch.Tensor
    """(L, B, T, K) how much each visit counts; sums to 1 over K."""

    @property
    def load(self) -> torch.Tensor:
        """(L, E) share of all visits that each expert got; rows sum to 1."""
        return torch.stack([_shares(experts, self.n_experts) for experts in self.experts])

    def dense_weights(self) -> torch.Tensor:
        """(L, B, T, E): each expert's weight for each token, 0 if the token did not use it."""
        weights = torch.zeros(*self.experts.shape[:-1], self.n_experts)
        return weights.scatter_add_(-1, self.experts, self.weights)


@torch.no_grad()
def routing_of(model: Transformer, ids: torch.Tensor, *, edit: Tap = no_tap) -> RoutedText:
    """Read ids (B, T), without padding, and return where each token went; `edit` may change intermediates on the way.

    Raises ValueError for a model without experts.
    """
    layers = expert_layers(model.config)
    passes = [model(some, Pass(tap=edit)).routings for some in ids.split(AT_ONCE)]  # each has a routing per layer
    experts, weights = (
        torch.stack([torch.cat([getattr(each, name) for each in layer]).cpu() for layer in zip(*passes)])
        for name in ("experts", "weights")
    )
    return RoutedText(layers, model.config.n_experts, experts, weights)


def expert_layers(config: ModelConfig) -> tuple[int, ...]:
    """The blocks that have experts. Raises ValueError if none has."""
    layers = tuple(layer for layer in range(config.n_layers) if config.has_experts(layer))
    if not layers:
        raise ValueError(
            "This is a dense model: every token goes through the same layers, so there is no routing to show. "
            "Choose a mixture of experts"
        )
    return layers


def second(layers: Sequence[int]) -> int:
    """The second of these layers, if there is one: the first one's router reads little besides the token itself."""
    return layers[min(1, len(layers) - 1)]


def _shares(experts: torch.Tensor, n_experts: int) -> torch.Tensor:
    return torch.bincount(experts.flatten(), minlength=n_experts) / experts.numel()
