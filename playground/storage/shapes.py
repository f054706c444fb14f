"""Shapes: name → shape of every tensor that a model of a config has, without building the model."""

from __future__ import annotations

import torch

from ..model import ModelConfig, Transformer

Shapes = dict[str, tuple[int, ...]]
State = dict[str, torch.Tensor]


def expected_shapes(config: ModelConfig) -> Shapes:
    """Of every tensor that a checkpoint of this config holds: a tied head counts once, tables are not among them.

    One block of each kind is built, without memory; the others have the same shapes.
    """
    dense = _of_one_block(config.replace(n_experts=0))
    mixture = _of_one_block(config) if config.n_experts else {}
    shapes = {name: shape for name, shape in dense.items() if not name.startswith("blocks.")}
    if config.positions == "learned":
        shapes["position_embedding.weight"] = (config.context_length, config.d_model)
    if config.tie_embeddings:
        del shapes["head.weight"]
    for layer in range(config.n_layers):
        block = mixture if config.has_experts(layer) else dense
        shapes |= {n.replace("blocks.0.", f"blocks.{layer}."): s for n, s in block.items() if n.startswith("blocks.")}
    return shapes


def _of_one_block(config: ModelConfig) -> Shapes:
    with torch.device("meta"):
        state = Transformer(config.replace(n_layers=1, moe_every=1, context_length=1)).state_dict()
    return {name: tuple(tensor.shape) for name, tensor in state.items()}
