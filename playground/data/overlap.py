"""Overlap: how much of the text that judges a model stands word for word in the text that it learns from."""

from __future__ import annotations

import torch

MUCH = 0.25
"""Share from which a low validation loss says little; ordinary prose and plays have none."""
SNIPPET = 60
"""Characters that have to be the same in a row."""


def overlap(train: torch.Tensor, val: torch.Tensor, length: int, snippets: int = 200) -> float:
    """Share of `snippets` pieces of `length` tokens, evenly spread over `val` (tokens,), that stand in `train`.

    Tokens become letters of a string: Python looks for a piece in it faster than any table of pieces is made.
    """
    length = min(length, len(val))
    learned, judged = _letters(train), _letters(val)
    starts = torch.linspace(0, len(judged) - length, snippets).long().unique().tolist()
    return sum(judged[start : start + length] in learned for start in starts) / len(starts)


def overlap_in_words(share: float) -> str:
    """Why a low validation loss would say little; empty where it says what it should."""
    if share < MUCH:
        return ""
    return (
        f"{100 * share:.0f} % of the text that judges the model stands word for word in the text it learns from, so a "
        "low validation loss shows a good memory here. Paste more text, or one that repeats itself less."
    )


def _letters(tokens: torch.Tensor) -> str:
    return (tokens.numpy() + 0x10000).astype("<u4").tobytes().decode("utf-32-le")  # beyond the surrogates
