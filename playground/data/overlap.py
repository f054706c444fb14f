"""Overlap: how much of the validation text is copied from the training text, and whether the two differ in kind."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import torch

MUCH = 0.25
"""From this overlap on, a low validation loss says little; ordinary prose and plays have no overlap."""
NEARLY_ALL = 0.9
"""From this overlap on, a validation loss only says how well a model knows its training text."""
SNIPPET = 60
"""How many characters in a row have to be the same."""

OTHER = 0.2
"""The texts differ in kind if guessing by the other text's frequencies surely loses this many nats per character. Our
own prose loses 0.04 that way at 5,000 characters and 0.01 at 20,000."""
NAMED = 3
"""How many characters are named if the texts differ in kind."""


def overlap(train: torch.Tensor, val: torch.Tensor, length: int, snippets: int = 200) -> float:
    """Share of `snippets` pieces of `length` tokens, evenly spread over `val` (tokens,), that occur in `train`.

    Tokens become characters of a string: Python finds a piece in it faster than a table of pieces could be made.
    """
    length = min(length, len(val))
    learned, judged = _letters(train), _letters(val)
    starts = torch.linspace(0, len(judged) - length, snippets).long().unique().tolist()
    return sum(judged[start : start + length] in learned for start in starts) / len(starts)


class OtherKind(NamedTuple):
    """How the end of a text differs from the rest."""

    characters: tuple[str, ...]
    """The characters that tell most."""
    here: float
    """Their share of the end."""
    there: float
    """Their share of the rest."""


def other_kind(learned: str, judging: str) -> OtherKind | None:
    """How the held-out end of a text differs in kind from the part learned; None if it does not clearly differ.

    The held-out characters get a loss from the character frequencies of the learned part (one added to each count),
    and one from their own frequencies. The first must be clearly higher, even after subtracting what chance adds in
    so short a text, and two standard errors.
    """
    known, own, n = Counter(learned), Counter(judging), len(judging)
    if not known or not own:
        return None
    kinds, total = len(known | own), len(learned)
    dearer = {c: math.log(count / n * (total + kinds) / (known[c] + 1)) for c, count in own.items()}
    mean = sum(count * dearer[c] for c, count in own.items()) / n
    error = math.sqrt(sum(count * (dearer[c] - mean) ** 2 for c, count in own.items())) / n
    if mean - (kinds - 1) / (2 * n) - 2 * error <= OTHER:
        return None
    most = tuple(sorted(own, key=lambda c: -own[c] * dearer[c])[:NAMED])
    return OtherKind(most, *(sum(text[c] for c in most) / size for text, size in ((own, n), (known, total))))


def _letters(tokens: torch.Tensor) -> str:
    return (tokens.numpy() + 0x10000).astype("<u4").tobytes().decode("utf-32-le")  # beyond the surrogates
