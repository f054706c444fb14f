"""Best: the weights of a run's lowest validation loss, kept while it goes on, and with its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .trainer import Run

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


def noted(run: Run) -> tuple[dict[str, Any] | None, dict[str, torch.Tensor]]:
    """What a run's saved state says of its best moment, and the tensors for it: none where the model itself is it."""
    if run.best is None:
        return None, {}
    tensors = {} if run.best.step == run.step else {PREFIX + name: t for name, t in run.best.weights.items()}
    return {"step": run.best.step, "val_loss": run.best.val_loss}, tensors


def remembered(note: Mapping[str, Any] | None, tensors: Mapping[str, torch.Tensor], run: Run) -> Best | None:
    """The inverse, for a run whose model and step were restored already. Raises KeyError for a missing tensor."""
    if note is None:
        return None
    if note["step"] == run.step:
        return Best(run.step, note["val_loss"], run.good_weights)
    device = next(run.model.parameters()).device
    weights = {name: tensors[PREFIX + name].to(device) for name in run.model.state_dict()}
    return Best(note["step"], note["val_loss"], weights)
