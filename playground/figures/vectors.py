"""Vectors as rows of coloured numbers, labelled in their roles' colours, and the rotation by rotary positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import palette
from .attention import written
from .shapes import FIXED, UPSIDE_DOWN, Figure, axis, cells, figure, heatmap, line, note, reach
from .wire import escaped, shortened

MOST_NUMBERS = 128
"""Most numbers of a vector that are drawn; the caller's sentence says how many there are."""
ROLES = {"q": palette.QUERY, "k": palette.KEY, "v": palette.VALUE, "s": palette.SCORES, "": palette.MUTED}
_MOST_PAIRS = 16


def vector_rows(
    rows: Sequence[tuple[str, np.ndarray, str]],
    *,
    chosen: int | Sequence[int] | None = None,
) -> Figure:
    """One row of cells per vector, on one diverging scale centred on 0; vectors may differ in length.

    Args:
        rows: (label, numbers (n,), role); the role, one of q k v s or empty, colours the label.
        chosen: rows whose label is marked with ▸.
    """
    marked = {chosen} if isinstance(chosen, int) else set(chosen or ())
    width = min(MOST_NUMBERS, max(len(vector) for _, vector, _ in rows))
    numbers_ = np.full((len(rows), width), np.nan)
    for row, (_, vector, _) in enumerate(rows):
        drawn = np.asarray(vector, dtype=np.float64)[:width]
        numbers_[row, : len(drawn)] = drawn
    ends = float(reach(numbers_))
    labels = [("▸ " if row in marked else "") + shortened(label, 22) for row, (label, _, _) in enumerate(rows)]
    place = {"yref": "y", "yanchor": "auto", "xanchor": "right", "xshift": -6}
    notes = [
        note(escaped(label), y=row, color=ROLES[role], **place)
        for row, (label, (_, _, role)) in enumerate(zip(labels, rows))
        if len(rows) <= 48 or row % 2 == 0
    ]
    room = 18 + int(6.6 * max(map(len, labels)))
    trace = cells(
        numbers_,
        "number %{x}: %{z:.4f}",
        scale=palette.DIVERGING_SCALE,
        ends=(-ends, ends),
        bar="value",
        text=written(numbers_.size),
        y=list(range(len(rows))),
        xgap=1 if width <= 64 else 0,
        ygap=2,
    )
    return heatmap(
        trace,
        min(760, 84 + len(rows) * (30 if len(rows) <= 8 else 20 if len(rows) <= 24 else 13)),
        axis("number", showgrid=False, **({"dtick": 1} if width <= 16 else {})),
        axis(showgrid=False, showticklabels=False, whole=[escaped(label) for label, _, _ in rows], **UPSIDE_DOWN),
        margin={"l": room, "r": 8, "t": 8, "b": 8},
        narrow={"margin.l": min(room, 96)},
        annotations=notes,
        uirevision=f"{len(rows)} {width}",
    )


def rotation(before: np.ndarray, after: np.ndarray, angles: np.ndarray) -> Figure:
    """Pairs of numbers (n, 2) as arrows from 0, dashed before and solid after turning by `angles` (n,) radians."""
    pairs = min(len(before), _MOST_PAIRS)
    reach_ = 1.2 * float(np.abs(np.concatenate((before[:pairs], after[:pairs]))).max(initial=1e-6))
    traces = []
    for i in range(pairs):
        start, end = before[i], after[i]
        swept = np.arctan2(start[1], start[0]) + np.linspace(0, angles[i] % (2 * np.pi), 24)
        way = 0.8 * np.linalg.norm(start) * np.array([np.cos(swept), np.sin(swept)])
        quiet = {"hover": None, "hoverinfo": "skip", "showlegend": False}
        traces += [
            line(*way, f"pair {i}, the way", palette.FAINT, width=1, **quiet),
            line(*_from_0(start), f"pair {i}, before", palette.FAINT, width=1.5, dash="dot", **quiet),
            line(
                *_from_0(end), f"pair {i}, after", palette.QUERY, marks={"size": [0.1, 6]}, showlegend=False,
                hover=f"pair {i}: turned by {np.degrees(angles[i]):,.1f}°<extra></extra>",
            ),
        ]  # fmt: skip
    tips = 1.12 * np.asarray(after[:pairs], dtype=np.float64)
    known = {"xref": "x", "yref": "y", "xanchor": "center", "yanchor": "middle", "size": 10}
    span = {"range": [-reach_, reach_], "zeroline": True, "zerolinecolor": palette.GRID, **FIXED}
    return figure(
        traces,
        380,
        margin={"l": 44, "r": 8, "t": 8, "b": 36},
        xaxis=axis("first number of the pair", **span),
        yaxis=axis("second", scaleanchor="x", **span),
        annotations=[
            note(str(i), x=x, y=y, **known)
            for i, (x, y) in enumerate(tips.tolist())
            if np.hypot(x, y) > 0.2 * reach_  # the numbers of short arrows would overlap
        ],
        uirevision=str(pairs),
    )


def _from_0(tip: np.ndarray) -> tuple[list[float], list[float]]:
    return [0, float(tip[0])], [0, float(tip[1])]
