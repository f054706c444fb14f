"""Overlap: how much of the validation text is copied from the training text."""

from __future__ import annotations

import torch

MUCH = 0.25
"""From this overlap on, a low validation loss says little; ordinary prose and plays have no overlap."""
NEARLY_ALL = 0.9
"""From this overlap on, a validation loss only says how well a model knows its training text."""
SNIPPET = 60
"""How many characters in a row have to be the same."""


def overlap(train: torch.Tensor, val: torch.Tensor, length: int, snippets: int = 200) -> float:
    """Share of `snippets` pieces of `length` tokens, evenly spread over `val` (tokens,), that occur in `train`.

    Tokens become characters of a string: Python finds a piece in it faster than a table of pieces could be made.
    """
    length = min(length, len(val))
    learned, judged = _letters(train), _letters(val)
    starts = torch.linspace(0, len(judged) - length, snippets).long().unique().tolist()
    return sum(judged[start : start + length] in learned for start in starts) / len(starts)


def _letters(tokens: torch.Tensor) -> str:
    return (tokens.numpy() + 0x10000).astype("<u4").tobytes().decode("utf-32-le")  # beyond the surrogates
