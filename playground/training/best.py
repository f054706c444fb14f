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
    """What the state of a run, saved at a step, says of its best moment, and its tensors: none where that is now."""
    if best is None:
        return None, {}
    tensors = {} if best.step == step else {PREFIX + name: t for name, t in best.weights.items()}
    return {"step": best.step, "val_loss": best.val_loss}, tensors


def remembered(
    note: Mapping[str, Any] | None, tensors: Mapping[str, torch.Tensor], step: int, now: Mapping[str, torch.Tensor]
) -> Best | None:
    """The inverse, for a run restored to this step with the weights `now`. Raises KeyError for a missing tensor."""
    if note is None:
        return None
    if note["step"] == step:
        return Best(step, note["val_loss"], now)
    return Best(note["step"], note["val_loss"], {name: tensors[PREFIX + name].to(t.device) for name, t in now.items()})
