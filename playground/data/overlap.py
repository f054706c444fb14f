"""Overlap: how much of the validation text is copied from the training text, and whether the two differ in kind."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import torch

MUCH = 0.25
"""Share of overlap from which a low validation loss says little; ordinary prose and plays have none."""
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


class OtherKind(NamedTuple):
    """How the end of a text differs from the rest."""

    characters: tuple[str, ...]
    """Those that tell most."""
    here: float
    """Share of the end that they are."""
    there: float
    """Share of the rest."""


def other_kind(learned: str, judging: str) -> OtherKind | None:
    """How the held-out end of a text differs in kind from the part that is learned; None if it does not clearly differ.

    The held-out characters get a loss from the character frequencies of the learned part (one added to each count),
    and one from their own frequencies. The first must be clearly higher, even after subtracting the excess that chance
    adds in so short a text, and two standard errors.
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
