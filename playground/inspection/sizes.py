"""Sizes: how many parameters each part of a model has, and how many operations it takes for one token."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import ModelConfig


@dataclass(frozen=True)
class Part:
    """One part of a model, over all layers."""

    name: str
    parameters: int
    operations: int
    """In matrix products, for one token."""


def parts(config: ModelConfig, length: int) -> list[Part]:
    """The parts, in the order in which a token meets them, for a token that attends to `length` keys.

    They sum to `config.n_parameters` and to `config.flops_per_token(length)`.
    """
    counted, d, D = config.parameters_by_component(), config.d_model, config.d_head
    projections = 2 * d * D * (2 * config.n_heads + 2 * config.kv_heads)
    attention = config.n_layers * (projections + 4 * length * config.n_heads * D)  # scores and weighted average
    output = 2 * d * config.vocab_size
    mixed = ("experts",) if config.n_moe_layers == config.n_layers else ("MLPs", "experts")
    return [
        Part("embeddings", counted["token embedding"] + counted["position embedding"], 0),
        Part("attention", counted["attention"], attention),
        Part(
            " and ".join(mixed) if config.n_moe_layers else "MLPs",
            counted["feed-forward"] + counted["experts"] + counted["routers"],
            config.flops_per_token(length) - attention - output,
        ),
        Part("norms", counted["norms"], 0),
        Part("output layer", counted["output head"], output),
    ]
