"""The batches of one training step: where their padding is, and how much each one counts.

B = batch, T = context length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from ..data.baselines import IGNORE
from ..data.corpus import real_tokens


class Batch(NamedTuple):
    """What goes through the model in one forward pass."""

    inputs: torch.Tensor
    """(B, T)"""
    targets: torch.Tensor
    """(B, T), IGNORE where a target does not count."""
    mask: torch.Tensor | None
    """(B, T), False for padding; None if there is none."""
    weight: float
    """This pass's share of the step's tokens."""


def weighed(
    passes: Sequence[tuple[torch.Tensor, torch.Tensor]], device: torch.device
) -> tuple[list[Batch], int | None]:
    """A step's forward passes, given the inputs and targets (B, T) of each.

    Also returns how many targets count in all passes together; None for a single pass.
    """
    counted = sum(int((y != IGNORE).sum()) for _, y in passes) if len(passes) > 1 else None
    masks = [real_tokens(y) for _, y in passes]
    tokens = [x.numel() if mask is None else int(mask.sum()) for (x, _), mask in zip(passes, masks)]
    batches = []
    for (x, y), mask, n in zip(passes, masks, tokens):
        parts = (None if part is None else part.to(device) for part in (x, y, mask))
        batches.append(Batch(*parts, weight=n / sum(tokens)))
    return batches, counted
