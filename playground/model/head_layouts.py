"""Two layouts of the same heads: one fused matrix for all of Q, K and V, or a list of heads with three each."""

from __future__ import annotations

import torch

from .config import ModelConfig


def fuse_heads(state: dict[str, torch.Tensor], config: ModelConfig) -> dict[str, torch.Tensor]:
    """Turn a separate-heads state dict into the fused layout's, with exactly the same numbers."""
    fused = {name: tensor for name, tensor in state.items() if ".attention.heads." not in name}
    for layer in range(config.n_layers):
        at = f"blocks.{layer}.attention"
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = [state[f"{at}.heads.{h}.{name}.{kind}"] for name in "qkv" for h in range(config.n_heads)]
            fused[f"{at}.qkv.{kind}"] = torch.cat(parts)
    return fused
