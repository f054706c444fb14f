"""Head matrices: W_q, W_k, W_v and W_o of one head, found in the parameters that hold them for all heads.

d = d_model, D = d_head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..model import ModelConfig


@dataclass(frozen=True)
class Matrix:
    """A named part of a parameter: some rows (or columns) of one tensor."""

    title: str
    name: str
    """The parameter it belongs to."""
    start: int = 0
    stop: int | None = None
    columns: bool = False
    """Whether it is columns start … stop instead of rows."""

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The part (rows, columns) of the parameter's tensor; a vector becomes one row."""
        tensor = tensor if tensor.ndim > 1 else tensor[None]
        tensor = tensor.flatten(0, -2)  # experts are stacked below one another
        return tensor[:, self.start : self.stop] if self.columns else tensor[self.start : self.stop]


def head_matrix(config: ModelConfig, kind: str, layer: int, head: int) -> Matrix:
    """W_q, W_k, W_v (D, d) or W_o (d, D) of one head; for grouped heads, the key and value that this head reads."""
    D, at = config.d_head, f"blocks.{layer}.attention"
    kv = head // (config.n_heads // config.kv_heads)
    title = f"W{kind} · layer {layer}, head {head if kind in 'qo' else kv}"
    if kind == "o":
        return Matrix(title, f"{at}.out.weight", head * D, (head + 1) * D, columns=True)
    if config.attention_layout == "separate_heads":
        return Matrix(title, f"{at}.heads.{head}.{kind}.weight")
    first = {"q": head, "k": config.n_heads + kv, "v": config.n_heads + config.kv_heads + kv}[kind]
    return Matrix(title, f"{at}.qkv.weight", first * D, (first + 1) * D)
