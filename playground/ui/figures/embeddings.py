"""Which words the model treats alike: cosine similarity of token embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def cosine_similarity(vectors: np.ndarray) -> np.ndarray:
    """(V, d) → (V, V) cosines, 0 for a zero vector."""
    raise NotImplementedError


def similarity_map(similarity: np.ndarray, words: Sequence[str], *, height: int | None = None) -> dict[str, Any]:
    """Heat map of `similarity` (V, V) from −1 to 1 with the words on both axes; the diagonal is blank.

    Words are drawn in the given order; `similarity_order` gives one that puts words used alike side by side.
    """
    raise NotImplementedError


def similarity_order(similarity: np.ndarray) -> list[int]:
    """An order of the rows in which each word stands next to the most similar one still free."""
    raise NotImplementedError


def describe_similarity(similarity: np.ndarray, words: Sequence[str]) -> str:
    """The closest pair and the most opposed pair."""
    raise NotImplementedError
