"""Two layouts of the same heads: one fused matrix for all of Q, K and V, or a list of heads with three each."""

from __future__ import annotations

import torch

from .config import ModelConfig


def fuse_heads(state: dict[str, torch.Tensor], config: ModelConfig) -> dict[str, torch.Tensor]:
    """A separate-heads state dict as the fused layout's, number for number."""
    fused = {name: tensor for name, tensor in state.items() if ".attention.heads." not in name}
    for layer in range(config.n_layers):
        at = f"blocks.{layer}.attention"
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = [state[f"{at}.heads.{h}.{name}.{kind}"] for name in "qkv" for h in range(config.n_heads)]
            fused[f"{at}.qkv.{kind}"] = torch.cat(parts)
    return fused


def split_heads(state: dict[str, torch.Tensor], config: ModelConfig) -> dict[str, torch.Tensor]:
    """A fused state dict as the separate-heads layout's, number for number; the inverse of `fuse_heads`."""
    split = {name: tensor for name, tensor in state.items() if ".attention.qkv." not in name}
    for layer in range(config.n_layers):
        at = f"blocks.{layer}.attention"
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = state[f"{at}.qkv.{kind}"].split(config.d_head)
            for i, part in enumerate(parts):
                split[f"{at}.heads.{i % config.n_heads}.{'qkv'[i // config.n_heads]}.{kind}"] = part.clone()
    return split
