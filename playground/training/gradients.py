"""Gradients in numbers: how long each part's is."""

from __future__ import annotations

import math

from ..model import Transformer


def gradient_norms(model: Transformer) -> dict[str, float]:
    """Length of the gradient of each part of the model: embedding, every block's attention and feed-forward, head."""
    squares: dict[str, float] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            where = name.split(".")
            part = f"{where[1]} {where[2].removesuffix('_norm')}" if where[0] == "blocks" else where[0]
            squares[part] = squares.get(part, 0.0) + float(parameter.grad.float().square().sum())
    return {part: math.sqrt(total) for part, total in squares.items()}
