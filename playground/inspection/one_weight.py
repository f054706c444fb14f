"""One weight, by hand: the first step that each optimizer makes with it, term by term, in float64."""

from __future__ import annotations

import math

import torch

from ..training import TrainConfig


def first_adamw_step(
    weight: float, gradient: float, rate: float, beta1: float, beta2: float, decay: float, eps: float = 1e-8
) -> dict[str, float]:
    """The first step of AdamW (Loshchilov and Hutter 2019) for one weight.

    Both averages start at 0 and are corrected for it, so the first corrected averages are the gradient and its square
    themselves: whatever the gradient's size, the weight moves by about the learning rate.
    """
    m, v = (1 - beta1) * gradient, (1 - beta2) * gradient**2
    m_corrected, v_corrected = m / (1 - beta1), v / (1 - beta2)
    move = -rate * m_corrected / (math.sqrt(v_corrected) + eps)
    shrink = -rate * decay * weight
    return {
        "m": m,
        "v": v,
        "m_corrected": m_corrected,
        "v_corrected": v_corrected,
        "shrink": shrink,
        "move": move,
        "after": weight + shrink + move,
    }


def first_sgd_step(weight: float, gradient: float, rate: float) -> float:
    """The weight after plain gradient descent: weight − rate · gradient."""
    return weight - rate * gradient


def decay_of(name: str, tensor: torch.Tensor, config: TrainConfig, rule: str) -> float:
    """The weight decay that this parameter gets: none for norms and biases, none under SGD here."""
    matrix = tensor.ndim >= 2 and not name.endswith("bias")
    return config.weight_decay if matrix and rule != "sgd" else 0.0
