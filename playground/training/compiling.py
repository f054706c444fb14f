"""torch.compile, where this machine has it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..model import Pass, Transformer
from ..model.moe import hide_experts
from .proof import first_line


def compiled(model: Transformer, ids: torch.Tensor, mask: torch.Tensor | None) -> tuple[Callable, str | None]:
    """The compiled forward pass, tried on ids (B, T) and their mask; or the plain one and the error, if this machine
    cannot compile."""
    try:
        hide_experts(model)
        forward = torch.compile(model, dynamic=False)
        forward(ids, Pass(mask=mask)).logits.sum().backward()
        model.zero_grad()
        return forward, None
    except Exception as problem:  # a missing C++ compiler shows itself in many ways
        return model, first_line(problem)
