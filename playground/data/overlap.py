"""Overlap: how much of the text that judges a model stands word for word in the text that it learns from, and whether
it is another kind of text altogether."""

from __future__ import annotations

import math
from collections import Counter

import torch

from .tokenizers import visible

MUCH = 0.25
"""Share from which a low validation loss says little; ordinary prose and plays have none."""
SNIPPET = 60
"""Characters that have to be the same in a row."""

OTHER = 0.2
"""Nats per character, surely lost by who goes by another text's frequencies, from which that is another kind. Our own
prose loses 0.04 so at 5,000 characters and 0.01 at 20,000."""
NAMED = 3
"""Characters that are named where it is."""


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


def other_kind_in_words(learned: str, judging: str) -> str:
    """That the end of a text, which judges, is clearly another kind than what is learned from; empty where it is not.

    What the judging characters lose by the frequencies of those learned (with one added to each) is held against what
    they lose by their own, less what so few of them would lose by chance, and two standard errors.
    """
    known, own, n = Counter(learned), Counter(judging), len(judging)
    if not known or not own:
        return ""
    kinds, total = len(known | own), len(learned)
    dearer = {c: math.log(count / n * (total + kinds) / (known[c] + 1)) for c, count in own.items()}
    mean = sum(count * dearer[c] for c, count in own.items()) / n
    error = math.sqrt(sum(count * (dearer[c] - mean) ** 2 for c, count in own.items())) / n
    if mean - (kinds - 1) / (2 * n) - 2 * error <= OTHER:
        return ""
    most = sorted(own, key=lambda c: -own[c] * dearer[c])[:NAMED]
    here, there = (100 * sum(text[c] for c in most) / size for text, size in ((own, n), (known, total)))
    *others, last = (f"“{visible(c)}”" for c in most)
    listed = f"{', '.join(others)} and {last}" if others else last
    return (
        f"The last tenth of the text, which judges, is another kind of text than the rest: {listed} "
        f"{'are' if others else 'is'} {here:.0f} % of it and {there:.0f} % of what is learned from. Shuffle the text’s "
        "parts, so that both hold some of each kind."
    )


def _letters(tokens: torch.Tensor) -> str:
    return (tokens.numpy() + 0x10000).astype("<u4").tobytes().decode("utf-32-le")  # beyond the surrogates
