"""Maps of a model: which words it treats alike, what each layer would predict, which parts the gradient pushes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..words.parts import plain_name
from . import palette
from .shapes import FIXED, MOST_TOKENS_ALONG, UPSIDE_DOWN, Figure, axis, cells, frame, heatmap, names, slanted
from .wire import escaped, numbers, shortened

_MOST_GUESSES = 28
"""With more columns than this, cells have no room for words."""


# ---- words that are used alike ---------------------------------------------------------------------------------------


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
    trace = cells(
        values,
        "%{y} · %{x}<br>cosine %{z:.2f}",
        scale=palette.DIVERGING_SCALE,
        ends=(-1, 1),
        bar="cosine",
        ticks={"tickvals": [-1, -0.5, 0, 0.5, 1]},
    )
    return heatmap(
        trace,
        max(260, 90 + 20 * len(words)),
        slanted(words),
        names(words, **UPSIDE_DOWN),
        square=True,
        uirevision=str(len(words)),
    )


def similarity_order(similarity: np.ndarray) -> list[int]:
    """An order of the rows: each word is followed by the most similar one not yet placed."""
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


# ---- what each layer would predict -----------------------------------------------------------------------------------


def lens_map(
    probabilities: np.ndarray,
    ranks: np.ndarray,
    guesses: Sequence[Sequence[str]],
    stages: Sequence[str],
    tokens: Sequence[str],
    *,
    chosen: int,
) -> Figure:
    """Stage × token: in each cell the stage's best guess, coloured by how probable it finds the last stage's.

    Args:
        probabilities, ranks: (S, T) of the last stage's guess.
        guesses: S rows of T texts.
        tokens: labels of the columns; chosen: the column to frame.
    """
    S, T = np.shape(probabilities)
    hover = [
        [
            f"{escaped(stages[s])}, after {escaped(tokens[t])}<br>best guess “{escaped(guesses[s][t])}”<br>"
            f"“{escaped(guesses[-1][t])}”: rank {int(ranks[s][t]):,}"
            for t in range(T)
        ]
        for s in range(S)
    ]
    trace = cells(
        probabilities,
        "%{hovertext}, probability %{z:.4f}",
        bar="probability",
        ticks={"tickvals": [0, 0.5, 1]},
        text=None if T > _MOST_GUESSES else [[escaped(shortened(guess, 8)) for guess in row] for row in guesses],
        hovertext=hover,
    )
    return heatmap(
        trace,
        max(200, 120 + 30 * S),
        slanted(tokens, "after reading", most=MOST_TOKENS_ALONG),
        names(stages, length=22, **UPSIDE_DOWN),
        frames=[frame((0, S - 1), chosen)],
        uirevision=f"{S} {T}",
    )


# ---- gradients along a run -------------------------------------------------------------------------------------------


def gradient_table(records: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[int], np.ndarray]:
    """From `History.gradients`: plain names of parts in order of appearance, steps, and norms (parts, steps); NaN where
    a part was not measured."""
    parts = list(dict.fromkeys(name for record in records for name in record["norms"]))
    steps = [int(record["step"]) for record in records]
    norms = np.array([[record["norms"].get(part, np.nan) for record in records] for part in parts], dtype=np.float64)
    return [plain_name(part) for part in parts], steps, norms.reshape(len(parts), len(steps))


def gradient_map(parts: Sequence[str], steps: Sequence[int], norms: np.ndarray) -> Figure:
    """Heat map, part of the model × step, colour on a log scale."""
    with np.errstate(divide="ignore"):
        exponents = np.log10(norms)
    finite = exponents[np.isfinite(exponents)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (-1.0, 1.0)
    if high - low < 0.1:
        low, high = low - 0.5, high + 0.5
    ticks = [t for t in range(-12, 13) if low <= t <= high] or [low, high]
    trace = cells(
        exponents,
        "%{y}<br>step %{x:,.0f}: gradient norm %{customdata:.4g}",
        ends=(low, high),
        bar="norm",
        ticks={"tickvals": ticks, "ticktext": [f"{10**t:.3g}" for t in ticks]},
        gap=0,
        ygap=2,
        x=numbers(steps),
        y=[escaped(part) for part in parts],
        customdata=numbers(norms),
        saved={"gradient norm": norms},
    )
    return heatmap(
        trace,
        84 + 24 * max(1, len(parts)),
        axis("step", showgrid=False, **({"tickvals": numbers(steps)} if len(steps) == 1 else {})),
        axis(**UPSIDE_DOWN, **FIXED, showgrid=False, ticklabelstandoff=6, type="category"),
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        narrow={"margin.r": 4},
    )
