"""Best: the weights of a run's lowest validation loss, kept while it goes on, and with its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

PREFIX = "best/"
"""Of the names of its tensors in a run's saved state."""


@dataclass(frozen=True)
class Best:
    """The moment of the lowest validation loss so far."""

    step: int
    """Optimizer steps done then."""
    val_loss: float
    weights: Mapping[str, torch.Tensor]
    """A copy of the state dict; nobody changes it."""


def noted(best: Best | None, step: int) -> tuple[dict[str, Any] | None, dict[str, torch.Tensor]]:
    """What the saved state of a run that has made so many steps says of its best moment, and the tensors for it: none
    where the model itself is it."""
    if best is None:
        return None, {}
    tensors = {} if best.step == step else {PREFIX + name: tensor for name, tensor in best.weights.items()}
    return {"step": best.step, "val_loss": best.val_loss}, tensors


def remembered(
    note: Mapping[str, Any] | None, tensors: Mapping[str, torch.Tensor], step: int, weights: Mapping[str, torch.Tensor]
) -> Best | None:
    """The inverse, for a run with these steps and weights. Raises KeyError for a missing tensor."""
    if note is None or note["step"] == step:
        return note and Best(step, note["val_loss"], weights)
    there = {name: tensors[PREFIX + name].to(weight.device) for name, weight in weights.items()}
    return Best(note["step"], note["val_loss"], there)
