"""Routing: which experts every token of a text visits in every layer, how much each counts, and what the router scored.

B = batch, T = tokens, L = layers with experts, E = experts, K = experts per token.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..model import ModelConfig, Pass, Tap, Transformer, no_tap

AT_ONCE = 16
"""Windows that go through the model together."""


@dataclass(frozen=True, eq=False)
class RoutedText:
    """Where a model sent every token of a text. All on the CPU, nothing here carries a gradient."""

    layers: tuple[int, ...]
    """The L blocks that have experts, counted from 0."""
    logits: torch.Tensor
    """(L, B, T, E) the router's scores."""
    probabilities: torch.Tensor
    """(L, B, T, E) their softmax."""
    experts: torch.Tensor
    """(L, B, T, K) the experts visited, heaviest first."""
    weights: torch.Tensor
    """(L, B, T, K) how much each visit counts; sums to 1 over K."""

    @property
    def n_experts(self) -> int:
        """E."""
        return self.logits.shape[-1]

    @property
    def load(self) -> torch.Tensor:
        """(L, E) share of all visits that each expert got; rows sum to 1."""
        return torch.stack([_shares(experts, self.n_experts) for experts in self.experts])

    @property
    def weight(self) -> torch.Tensor:
        """(L, E) share of all weight that each expert's output got: a visit may count next to nothing; sums to 1."""
        return self.dense_weights().mean(dim=(1, 2))

    @property
    def first(self) -> torch.Tensor:
        """(L, E) share of tokens whose first choice each expert is; rows sum to 1."""
        return torch.stack([_shares(experts[..., :1], self.n_experts) for experts in self.experts])

    def dense_weights(self) -> torch.Tensor:
        """(L, B, T, E): each expert's weight for each token, 0 where it was not visited."""
        return torch.zeros_like(self.logits).scatter_add_(-1, self.experts, self.weights)

    def stations(self, position: int, window: int = 0) -> list[Station]:
        """One token's way through all layers with experts, the first layer first."""
        numbers = (self.experts, self.weights, self.logits, self.probabilities)
        return [
            Station(layer, *(tuple(each[i, window, position].tolist()) for each in numbers))
            for i, layer in enumerate(self.layers)
        ]


@dataclass(frozen=True)
class Station:
    """What one token met in one layer."""

    layer: int
    experts: tuple[int, ...]
    """The K experts it visited, heaviest first."""
    weights: tuple[float, ...]
    """How much each of them counted."""
    logits: tuple[float, ...]
    """The router's score of every expert."""
    probabilities: tuple[float, ...]
    """Softmax of the scores."""

    @property
    def margin(self) -> float:
        """By how much the last expert chosen beat the best one left out; infinite where every expert is visited."""
        left_out = [score for expert, score in enumerate(self.logits) if expert not in self.experts]
        chosen = min(self.logits[expert] for expert in self.experts)
        return chosen - max(left_out) if left_out else float("inf")


@torch.no_grad()
def routing_of(model: Transformer, ids: torch.Tensor, *, edit: Tap = no_tap) -> RoutedText:
    """Read ids (B, T), none of which is padding, and return where each token went; `edit` may change things on the way.

    Raises ValueError for a model without experts.
    """
    layers = expert_layers(model.config)
    passes = [model(some, Pass(tap=edit)).routings for some in ids.split(AT_ONCE)]  # each holds a routing per layer
    logits, probabilities, experts, weights = (
        torch.stack([torch.cat([getattr(each, name) for each in layer]).cpu() for layer in zip(*passes)])
        for name in ("logits", "probabilities", "experts", "weights")
    )
    return RoutedText(layers, logits, probabilities, experts, weights)


def expert_layers(config: ModelConfig) -> tuple[int, ...]:
    """The blocks that have experts. Raises ValueError where none has."""
    layers = tuple(layer for layer in range(config.n_layers) if config.has_experts(layer))
    if not layers:
        raise ValueError(
            "This is a dense model: every token goes through the same layers, so there is no routing to show. "
            "Choose a mixture of experts"
        )
    return layers


def _shares(experts: torch.Tensor, n_experts: int) -> torch.Tensor:
    return torch.bincount(experts.flatten(), minlength=n_experts) / experts.numel()
