"""torch.compile, where this machine has it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..model import Pass, Transformer
from ..model.moe import hide_experts


def compiled(model: Transformer, ids: torch.Tensor, mask: torch.Tensor | None) -> tuple[Callable, str | None]:
    """The compiled forward, tried on ids (B, T) and their mask, or the plain one and a sentence where this machine
    cannot compile."""
    try:
        hide_experts(model)
        forward = torch.compile(model, dynamic=False)
        forward(ids, Pass(mask=mask)).logits.sum().backward()
        for parameter in model.parameters():
            parameter.grad = None
        return forward, None
    except Exception as problem:  # a missing C++ compiler shows itself in many ways
        first_line = str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__
        return model, first_line
