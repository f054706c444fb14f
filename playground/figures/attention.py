"""Attention and other maps over tokens: one pattern, signed values, and all heads at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .shapes import (
    MOST_TOKENS_ALONG,
    UPSIDE_DOWN,
    Figure,
    axis,
    cells,
    figure,
    frame,
    heatmap,
    hidden,
    names,
    note,
    nth,
    panels,
    reach,
    slanted,
)
from .wire import escaped, numbers

_MOST_WRITTEN = 150
"""Up to this many cells, each has its number written in it."""
_ROWS = 24
"""Row names that fit above each other."""
_COLUMNS, _PANEL = 4, 127
"""Small pictures in a row, and the height of each with its title in pixels."""


def pattern_map(
    pattern: np.ndarray,
    tokens: Sequence[str],
    *,
    causal: bool = True,
    height: int = 380,
    first: int = 0,
    mark: tuple[int, int] | None = None,
) -> Figure:
    """Attention weights (T, T) on a fixed 0–1 scale of one hue; cells that the mask removes are blank.

    Args:
        tokens: the T tokens' visible texts.
        first: the first token's position in its prompt, if only a part of a long prompt is shown.
        mark: (row, column) of a cell to frame, counted within the part shown.
    """
    values = _blanked(pattern, causal)
    trace = cells(
        values,
        "query %{y}, key %{x}<br>weight %{z:.4f}",
        scale=palette.PATTERN_SCALE,
        text=written(np.size(pattern)),
        bar=None if written(np.size(pattern)) else "weight",
        ticks={"tickvals": [0, 0.5, 1]},
    )
    return heatmap(
        trace,
        height,
        slanted(tokens, "looks at (key)", first=first, most=MOST_TOKENS_ALONG),
        names(tokens, "query", first=first, most=_ROWS, **UPSIDE_DOWN),
        frames=framed(mark),
        square=True,
        narrow={"xaxis.title.text": ""},  # slanted tokens need its room
        annotations=_masked(values),
        uirevision=f"{len(tokens)}",
    )


def signed_map(values: np.ndarray, tokens: Sequence[str], *, name: str, mark: tuple[int, int] | None = None) -> Figure:
    """Signed values (T, T) on one diverging scale centred on 0; −∞ is blank. `mark` (row, column) frames a cell."""
    values = np.where(np.isfinite(values), values, np.nan)
    return heatmap(
        _signed_cells(values, "%{y}, %{x}", name),
        380,
        slanted(tokens, most=MOST_TOKENS_ALONG),
        names(tokens, most=_ROWS, **UPSIDE_DOWN),
        frames=framed(mark),
        square=True,
        annotations=_masked(values),
        uirevision=f"{len(tokens)}",
    )


def _signed_cells(values: np.ndarray, cell: str, name: str, **more: Any) -> dict[str, Any]:
    """Cells on one diverging scale centred on 0; `cell` names the one under the pointer, `name` its number."""
    limit = reach(values)
    return cells(
        values,
        f"{cell}<br>{escaped(name)} %{{z:.4g}}",
        scale=palette.DIVERGING_SCALE,
        ends=(-limit, limit),
        text=written(values.size),
        bar=escaped(name),
        **more,
    )


def weights_map(values: np.ndarray, name: str, rows: range, columns: range, mark: tuple[int, int]) -> Figure:
    """These rows and columns of a matrix, or one number for each of its weights; the weight at `mark` is framed."""
    along, down = ({"showgrid": False, "dtick": 8 if len(each) > 12 else 1} for each in (columns, rows))
    return heatmap(
        _signed_cells(values, "row %{y}, column %{x}", name, x=[*columns], y=[*rows]),
        280,
        axis("column", **along),
        axis("row", **down, **UPSIDE_DOWN),
        frames=framed(mark),
        margin={"l": 48, "r": 96, "t": 8, "b": 40, "autoexpand": False},  # pictures of one matrix are as wide
        narrow={"margin.r": 76},
        uirevision=f"{rows} {columns}",
    )


def head_grid(patterns: np.ndarray, titles: Sequence[str], *, causal: bool = True, chosen: int | None = None) -> Figure:
    """All heads (N, T, T) as small pictures in one figure; the `trace` in a click is the head's index.

    Args:
        titles: one short name per head, such as L0 H3.
        chosen: index of the head whose picture is framed.
    """
    patterns = np.asarray(patterns, dtype=np.float64)
    count = len(patterns)
    n_columns = min(_COLUMNS, count)
    n_rows = -(-count // n_columns)
    titles = [*map(escaped, titles)]
    height = 26 + _PANEL * n_rows
    across, title = panels(n_columns), 21 / height
    tall = (1 - title * n_rows) / n_rows
    square = hidden(constrain="domain")
    traces, axes, notes, frames = [], {}, [], []
    for i, pattern in enumerate(patterns):
        row, column = divmod(i, n_columns)
        top = 1 - title - row * (tall + title)
        x, y, z = nth("x", i), nth("y", i), numbers(_blanked(pattern, causal))
        traces.append(
            {
                "type": "heatmap", "z": z, "xaxis": x, "yaxis": y, "coloraxis": "coloraxis", "name": titles[i],
                "hovertemplate": f"{titles[i]}<extra></extra>",
            }
        )  # fmt: skip
        axes[nth("xaxis", i)] = {**square, "domain": across[column], "anchor": y, "constraintoward": "left"}
        axes[nth("yaxis", i)] = {
            **square, "domain": [max(0.0, top - tall), top], "anchor": x, **UPSIDE_DOWN,
            "constraintoward": "top", "scaleanchor": x,
        }  # fmt: skip
        color = palette.HIGHLIGHT if i == chosen else palette.MUTED
        notes.append(note(titles[i], align="left", x=across[column][0], y=top, color=color))
        if i == chosen:
            whole = 0, pattern.shape[0] - 1
            frames.append(frame(whole, whole, xref=x, yref=y))
    return figure(
        traces,
        height,
        margin={"l": 4, "r": 4, "t": 0, "b": 26},
        narrow={"height": 0.8 * height},
        annotations=notes,
        shapes=frames,
        coloraxis={"colorscale": [list(s) for s in palette.PATTERN_SCALE], "cmin": 0, "cmax": 1, "showscale": False},
        uirevision=str(count),
        **axes,
    )


def _blanked(pattern: np.ndarray, causal: bool) -> np.ndarray:
    """The pattern with NaN where a query would look at a later key."""
    pattern = np.array(pattern, dtype=np.float64)
    if causal:
        pattern[np.triu_indices(len(pattern), 1)] = np.nan
    return pattern


def _masked(values: np.ndarray) -> list[dict[str, Any]]:
    """The word for the blank corner of a map, if it has one."""
    corner = {"xref": "x", "x": values.shape[1] - 0.5, "xanchor": "right", "yref": "y", "y": -0.5, "yanchor": "top"}
    return [note("masked", **corner)] if np.isnan(values[:1, -1:]).any() else []


def written(count: int) -> bool | None:
    """Whether there are few enough cells to read a number in each."""
    return True if count <= _MOST_WRITTEN else None


def framed(cell: tuple[int, int] | None) -> list[dict[str, Any]]:
    """A frame around one cell (row, column) of a map, if there is one, on a pale band that parts it from any colour."""
    return [] if cell is None else [frame(*cell, line={"color": palette.PAPER, "width": 6}), frame(*cell)]
