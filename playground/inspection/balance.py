"""Balance: how evenly experts are used, and which are dead.

L = layers with experts, E = experts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

DEAD_SHARE = 0.01
"""An expert counts as dead if its share of the visits is below this fraction of an even share."""


@dataclass(frozen=True)
class Evenness:
    """How evenly one layer spreads tokens over its experts."""

    entropy: float
    """The entropy of the shares, in bits."""
    most: float
    """The entropy if all E experts were used evenly: log2 E."""
    busiest_share: float
    dead: tuple[int, ...]
    """Experts that get next to nothing."""


def evenness(load: Sequence[float]) -> Evenness:
    """Entropy, the busiest expert's share and dead experts, from one layer's shares of visits (E,), which sum to 1."""
    shares = [float(share) for share in load]
    return Evenness(
        entropy=entropy(shares),
        most=math.log2(len(shares)),
        busiest_share=max(shares),
        dead=tuple(e for e, share in enumerate(shares) if share < DEAD_SHARE / len(shares)),
    )


def load_over_training(
    records: Sequence[Mapping[str, Any]], n_layers: int, n_experts: int
) -> tuple[tuple[int, ...], torch.Tensor] | None:
    """The steps, and the shares of visits (records, L, E) at each, from `History.load`'s records {step, load}.

    Records of other shapes are left out; None if none fits.
    """
    steps, loads = [], []
    for record in records:
        try:
            load = torch.tensor(record["load"], dtype=torch.float64)
        except (KeyError, TypeError, ValueError):
            continue
        if load.shape == (n_layers, n_experts):
            steps.append(int(record["step"]))
            loads.append(load)
    return (tuple(steps), torch.stack(loads)) if loads else None


def entropy(counts: Sequence[float] | np.ndarray) -> float:
    """Entropy in bits of counts or shares (any shape)."""
    shares = np.asarray(counts, dtype=np.float64).ravel()
    shares = shares[shares > 0] / shares.sum() if shares.sum() else shares[:0]
    return float(-(shares * np.log2(shares)).sum()) + 0.0
