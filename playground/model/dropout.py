"""Dropout whose randomness is passed in: no generator, no dropout."""

from __future__ import annotations

import torch


def dropout(x: torch.Tensor, probability: float, rng: torch.Generator | None) -> torch.Tensor:
    """Zero each number of x with this probability and scale the rest by 1/(1 − p) (Srivastava et al. 2014).

    With `rng` None, x itself: evaluation, decoding and inspection need no mode to be switched, and two trainings in
    two threads cannot disturb each other's randomness.
    """
    if rng is None or probability == 0.0:
        return x
    keep = torch.empty_like(x).bernoulli_(1.0 - probability, generator=rng)
    return x * keep / (1.0 - probability)
