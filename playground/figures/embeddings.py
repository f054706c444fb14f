"""Which words the model treats alike: cosine similarity of token embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..words.numbers import signed
from . import palette
from .shapes import UPSIDE_DOWN, Figure, cells, heatmap, names, slanted
from .wire import escaped


def cosine_similarity(vectors: np.ndarray) -> np.ndarray:
    """(V, d) → (V, V) cosines, 0 for a zero vector."""
    vectors = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit @ unit.T


def similarity_map(similarity: np.ndarray, words: Sequence[str]) -> Figure:
    """Heat map of `similarity` (V, V) from −1 to 1 with the words on both axes; the diagonal is blank.

    Words are drawn in the given order; `similarity_order` gives one that puts words used alike side by side.
    """
    values = np.array(similarity, dtype=np.float64)
    np.fill_diagonal(values, np.nan)
    few = len(words) <= 24
    pairs = [[f"{escaped(a)} · {escaped(b)}" for b in words] for a in words] if few else None
    trace = cells(
        values,
        "%{customdata}<br>cosine %{z:.2f}" if few else "cosine %{z:.2f}",
        scale=palette.DIVERGING_SCALE,
        ends=(-1, 1),
        bar="cosine",
        ticks={"tickvals": [-1, -0.5, 0, 0.5, 1]},
        customdata=pairs,
    )
    return heatmap(
        trace,
        max(260, 90 + 20 * len(words)),
        slanted(words),
        names(words, **UPSIDE_DOWN),
        uirevision=str(len(words)),
    )


def similarity_order(similarity: np.ndarray) -> list[int]:
    """An order of the rows in which each word stands next to the most similar one still free."""
    values = np.array(similarity, dtype=np.float64)
    count = len(values)
    if count < 3:
        return list(range(count))
    np.fill_diagonal(values, -np.inf)
    order = [int(np.unravel_index(np.argmax(values), values.shape)[0])]
    free = set(range(count)) - set(order)
    while free:
        rest = sorted(free)
        order.append(rest[int(np.argmax(values[order[-1], rest]))])
        free.discard(order[-1])
    return order


def describe_similarity(similarity: np.ndarray, words: Sequence[str], part: bool = False) -> str:
    """The closest pair and the most opposed pair; `part` says that these are only the first words of a vocabulary."""
    if len(words) < 2:
        return "It takes two words to compare."
    values = np.array(similarity, dtype=np.float64)
    upper = np.triu_indices(len(words), 1)
    pairs = values[upper]
    best, worst = int(np.argmax(pairs)), int(np.argmin(pairs))

    def named(pair: int) -> str:
        return f"“{words[upper[0][pair]]}” and “{words[upper[1][pair]]}”"

    most = f"Among the first {len(words)} words, most" if part else "Most"
    return (
        f"{most} similar: {named(best)} (cosine {signed(pairs[best])}). "
        f"Least similar: {named(worst)} ({signed(pairs[worst])}). Unrelated words are near 0."
    )
