"""The batches of a step as one process sees them: its rows, which of them are padding, and how much they count.

B = batch, T = context length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from ..data.baselines import IGNORE
from ..data.corpus import real_tokens
from .distributed import Alone


class Batch(NamedTuple):
    """What one process puts through the model in one forward pass."""

    inputs: torch.Tensor
    """(B, T)"""
    targets: torch.Tensor
    """(B, T), IGNORE where none counts."""
    mask: torch.Tensor | None
    """(B, T), False for padding; None where there is none."""
    share: float
    """Which part of the pass's tokens are this process's."""
    weight: float
    """Which part of the step's tokens are the pass's."""


def share_out(
    passes: Sequence[tuple[torch.Tensor, torch.Tensor]], workers: Alone, device: torch.device
) -> tuple[list[Batch], int | None]:
    """This process's part of a step's forward passes, given whole inputs and targets (B, T) of each.

    Also how many targets count in all of them, on all processes; None where there is one pass of one process, whose
    mean is its own.
    """
    counted = sum(int((y != IGNORE).sum()) for _, y in passes) if len(passes) * workers.size > 1 else None
    masks = [real_tokens(y) for _, y in passes]
    tokens = [_n_tokens(x, mask) for (x, _), mask in zip(passes, masks)]
    batches = []
    for (x, y), mask, n in zip(passes, masks, tokens):
        x, y, mask = (None if part is None else workers.rows(part) for part in (x, y, mask))
        share = _n_tokens(x, mask) / n
        parts = (None if part is None else part.to(device) for part in (x, y, mask))
        batches.append(Batch(*parts, share=share, weight=n / sum(tokens)))
    return batches, counted


def _n_tokens(inputs: torch.Tensor, mask: torch.Tensor | None) -> int:
    """How many of the inputs (B, T) are real tokens, not padding."""
    return inputs.numel() if mask is None else int(mask.sum())
