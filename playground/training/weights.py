"""Weights: a copy of a model's weights at one moment of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ..model import Transformer


@dataclass(frozen=True)
class Weights:
    """A copy of the weights at one moment of the run; it never changes."""

    step: int
    """Optimizer steps done then."""
    val_loss: float | None
    """Their validation loss; None if they were not evaluated."""
    state: Mapping[str, torch.Tensor]
    """The tensors, by their names in the state dict."""

    @classmethod
    def of(cls, model: Transformer, step: int, val_loss: float | None) -> Weights:
        """A copy of the model's present weights."""
        return cls(step, val_loss, {name: tensor.detach().clone() for name, tensor in model.state_dict().items()})
