"""Positions: sinusoidal vectors that are added, and rotations that turn queries and keys."""

from __future__ import annotations

import torch

from .fast.formulas import Rotation
from .fast.quicker import quicker


def sinusoidal(length: int, d_model: int) -> torch.Tensor:
    """Fixed position vectors (length, d_model): sines in even columns, cosines in odd (Vaswani et al. 2017, 3.5)."""
    position = _numbers(length)[:, None]
    frequency = 10_000.0 ** (-_numbers(d_model, 2) / d_model)
    angles = position * frequency  # (length, d_model / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).reshape(length, d_model)


def rotary_table(length: int, d_head: int, base: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines (length, 1, d_head) by which position p turns pair i through p · base^(−2i/d_head).

    Number i of a head is paired with number i + d_head/2 (the "half" layout of Llama's published weights; the paper,
    Su et al. 2021, pairs neighbours, which is the same function with the columns of Q and K reordered). The sine of
    the first half carries the minus sign of the rotation matrix, so that `rotate` is two products and a sum.
    """
    frequency = base ** (-_numbers(d_head, 2) / d_head)
    angles = _numbers(length)[:, None] * frequency  # (length, d_head / 2)
    cosines = torch.cat((angles.cos(), angles.cos()), dim=-1)
    sines = torch.cat((-angles.sin(), angles.sin()), dim=-1)
    return cosines[:, None, :], sines[:, None, :]


@quicker(by=Rotation)
def rotate(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Turn each pair of numbers of x (B, T, H, D) by its position's angle; cosines and sines are (T, 1, D)."""
    halves_swapped = torch.roll(x, x.shape[-1] // 2, dims=-1)
    return x * cosines + halves_swapped * sines


def _numbers(end: int, step: int = 1) -> torch.Tensor:
    # on the CPU even where a model is built for its shapes alone: sums without memory make torch load its compiler
    return torch.arange(0, end, step, dtype=torch.float32, device="cpu")
