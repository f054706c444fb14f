"""Vectors as rows of coloured numbers, labelled in the colours of their roles, and the turn of rotary positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .attention import written
from .wire import axis, colorbar, colorscale, escaped, layout, numbers, shortened

MOST_NUMBERS = 128
"""Numbers of a vector that are drawn; the caller's sentence says how many there are."""
ROLES = {"q": palette.QUERY, "k": palette.KEY, "v": palette.VALUE, "s": palette.SCORES, "": palette.MUTED}
_MOST_PAIRS = 16


def vector_rows(
    rows: Sequence[tuple[str, np.ndarray, str]],
    *,
    chosen: int | Sequence[int] | None = None,
    limit: float | None = None,
) -> dict[str, Any]:
    """One row of cells per vector, on one diverging scale centred on 0; vectors may differ in length.

    Args:
        rows: (label, numbers (n,), role); the role, one of q k v s or empty, colours the label.
        chosen: rows whose label is marked with ▸.
        limit: the ends of the scale at ±limit; by default the largest number drawn.
    """
    marked = {chosen} if isinstance(chosen, int) else set(chosen or ())
    width = min(MOST_NUMBERS, max(len(vector) for _, vector, _ in rows))
    cells = np.full((len(rows), width), np.nan)
    for row, (_, vector, _) in enumerate(rows):
        drawn = np.asarray(vector, dtype=np.float64)[:width]
        cells[row, : len(drawn)] = drawn
    largest = np.nanmax(np.abs(cells), initial=0.0)
    ends = float(limit or largest or 1.0)
    names = [shortened(label, 22) for label, _, _ in rows]
    notes = [
        {
            "text": ("▸ " if row in marked else "") + escaped(name),
            "xref": "paper",
            "x": 0,
            "y": row,
            "xanchor": "right",
            "xshift": -6,
            "showarrow": False,
            "font": {"size": 11, "color": ROLES[role]},
        }
        for row, (name, (_, _, role)) in enumerate(zip(names, rows))
        if len(rows) <= 48 or row % 2 == 0
    ]
    room = 18 + int(6.6 * max(len(name) + 2 * (row in marked) for row, name in enumerate(names)))
    return {
        "data": [
            {
                "type": "heatmap",
                "z": numbers(cells),
                "y": list(range(len(rows))),
                "colorscale": colorscale(palette.DIVERGING_SCALE),
                "zmin": -ends,
                "zmax": ends,
                "xgap": 1 if width <= 64 else 0,
                "ygap": 2,
                "hoverongaps": False,
                "hovertemplate": "row %{y}, number %{x}: %{z:.4f}<extra></extra>",
                **written(cells.size),
                "colorbar": colorbar("value"),
            }
        ],
        "layout": layout(
            int(min(760, 84 + len(rows) * (30 if len(rows) <= 8 else 20 if len(rows) <= 24 else 13))),
            margin={"l": room, "r": 8, "t": 8, "b": 8},
            narrow={"margin.l": min(room, 96)},
            annotations=notes,
            xaxis=axis("number", showgrid=False, **({"dtick": 1} if width <= 16 else {})),
            yaxis=axis(autorange="reversed", showgrid=False, showticklabels=False),
            uirevision=f"{len(rows)} {width}",
        ),
    }


def rotation(before: np.ndarray, after: np.ndarray, angles: np.ndarray) -> dict[str, Any]:
    """Pairs of numbers (n, 2) as arrows from 0, dashed before and solid after turning by `angles` (n,) radians."""
    pairs = min(len(before), _MOST_PAIRS)
    reach = 1.08 * float(np.abs(np.concatenate((before[:pairs], after[:pairs]))).max(initial=1e-6))
    traces = []
    for i in range(pairs):
        start, end = before[i], after[i]
        size = float(np.linalg.norm(start))
        first = float(np.arctan2(start[1], start[0]))
        swept = first + np.linspace(0, angles[i] % (2 * np.pi), 24)
        arc = {"x": numbers(0.8 * size * np.cos(swept)), "y": numbers(0.8 * size * np.sin(swept))}
        common = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
        traces += [
            {**common, **arc, "line": {"color": palette.FAINT, "width": 1}},
            {**common, "x": [0, float(start[0])], "y": [0, float(start[1])],
             "line": {"color": palette.FAINT, "dash": "dot", "width": 1.5}},
            {**common, "mode": "lines+markers+text", "x": [0, float(end[0])], "y": [0, float(end[1])],
             "text": ["", str(i)], "textposition": "top center", "textfont": {"size": 10, "color": palette.MUTED},
             "line": {"color": palette.QUERY, "width": 2}, "marker": {"size": [0.1, 6], "color": palette.QUERY},
             "hoverinfo": "text", "hovertext": ["", f"pair {i}: turned by {np.degrees(angles[i]):,.1f}°"]},
        ]  # fmt: skip
    return {
        "data": traces,
        "layout": layout(
            380,
            margin={"l": 44, "r": 8, "t": 8, "b": 36},
            xaxis=axis("first number of the pair", range=[-reach, reach], zeroline=True, zerolinecolor=palette.GRID),
            yaxis=axis("second", range=[-reach, reach], zeroline=True, zerolinecolor=palette.GRID, scaleanchor="x"),
            uirevision=str(pairs),
        ),
    }
