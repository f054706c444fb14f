"""Attention and other maps over tokens: one pattern, signed values, and all heads at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .wire import axis, colorbar, colorscale, escaped, layout, numbers, packed, shortened, signed

_MOST_LABELS = 48
"""More token labels than this on an axis cannot be read; every n-th is drawn then."""
_MOST_WRITTEN = 150
"""Cells up to which each has its number written into it."""


def pattern_map(
    pattern: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    causal: bool = True,
    height: int | None = None,
    first: int = 0,
    mark: tuple[int, int] | None = None,
    sums: bool = False,
) -> dict[str, Any]:
    """Attention weights (Tq, Tk) on a fixed 0–1 scale from white to one hue; cells the mask removes are blank.

    Args:
        queries, keys: visible token texts of rows and columns; keys default to the queries. With a cache Tq < Tk and
            the queries are the last rows.
        first: the place of the first token drawn, where only a part of a long prompt is.
        mark: (row, column) of a cell to frame, counted in what is drawn.
        sums: write each row's sum beside it instead of the colour bar.
    """
    keys = queries if keys is None else keys
    cells = {
        "type": "heatmap",
        "z": numbers(_blanked(pattern, causal)),
        "colorscale": colorscale(palette.PATTERN_SCALE),
        "zmin": 0,
        "zmax": 1,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "hovertemplate": "query %{y}, key %{x}<br>weight %{z:.4f}<extra></extra>",
        **written(np.size(pattern)),
        **({"showscale": False} if sums else {"colorbar": colorbar("weight", tickvals=[0, 0.5, 1])}),
    }
    return {
        "data": [cells],
        "layout": layout(
            height or _map_height(len(queries)),
            margin={"l": 8, "r": 46 if sums else 8, "t": 8, "b": 8},
            narrow={"xaxis.tickfont.size": 9, "yaxis.tickfont.size": 9},
            xaxis=axis("looks at (key)", **_tokens(keys, offset=first), tickangle=-60),
            yaxis=axis("query", **_tokens(queries, offset=first + len(keys) - len(queries)), autorange="reversed"),
            **framed(mark),
            **({"annotations": _sums(pattern)} if sums else {}),
            plot_bgcolor=palette.BAND,  # a masked cell shows this; a weight of 0 is white
            uirevision=f"{len(queries)} {len(keys)}",
        ),
    }


def describe_pattern(pattern: np.ndarray, queries: Sequence[str], keys: Sequence[str] | None = None) -> str:
    """Where the weight goes in this picture: previous token, first token, itself, or spread out."""
    keys = queries if keys is None else keys
    pattern = np.asarray(pattern, dtype=np.float64)
    rows, columns = pattern.shape
    if columns < 2:
        return "One token can only look at itself: its weight is 1."
    offset = columns - rows
    places = np.arange(rows)
    # The first row has no choice, so it says nothing about the head.
    counted = places[(places + offset) > 0]
    habits = {
        "the token before": pattern[counted, counted + offset - 1].mean(),
        "the first token": pattern[counted, 0].mean(),
        "the token itself": pattern[counted, counted + offset].mean(),
    }
    name, weight = max(habits.items(), key=lambda item: item[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(np.where(pattern > 0, pattern * np.log2(pattern), 0.0), axis=1)[counted].mean()
    most = np.log2(counted + offset + 1).mean()
    inner = pattern[counted]
    row, column = np.unravel_index(int(np.argmax(inner)), inner.shape)
    row = int(counted[row])
    strongest = (
        f" The strongest look goes from {row + offset} “{queries[row]}” to {column} “{keys[column]}” "
        f"({pattern[row, column]:.2f})."
    )
    if weight >= 0.4:
        return f"Mostly looks at {name}: {weight:.2f} of the weight on average.{strongest}"
    if most > 0 and entropy / most > 0.85:
        return f"Spreads its weight almost evenly ({entropy:.1f} of at most {most:.1f} bits).{strongest}"
    return f"Chooses by content rather than by place ({entropy:.1f} of at most {most:.1f} bits).{strongest}"


def signed_map(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    blank: np.ndarray | None = None,
    name: str = "value",
    limit: float | None = None,
    height: int | None = None,
    mark: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Signed values (R, C) on one diverging scale centred on 0; `blank` (R, C) marks cells not to draw.

    `limit` fixes the ends of the scale at ±limit, for pictures that are compared. `mark` (row, column) frames a cell.
    """
    values = np.array(values, dtype=np.float64)
    if blank is not None:
        values[np.asarray(blank, dtype=bool)] = np.nan
    finite = np.abs(values[np.isfinite(values)])
    limit = float(limit if limit is not None else (finite.max() if finite.size else 1.0)) or 1.0
    cells = {
        "type": "heatmap",
        "z": numbers(values),
        "colorscale": colorscale(palette.DIVERGING_SCALE),
        "zmin": -limit,
        "zmax": limit,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "hovertemplate": f"%{{y}}, %{{x}}<br>{escaped(name)} %{{z:.4f}}<extra></extra>",
        **written(values.size),
        "colorbar": colorbar(escaped(name)),
    }
    return {
        "data": [cells],
        "layout": layout(
            height or _map_height(len(rows)),
            margin={"l": 8, "r": 8, "t": 8, "b": 8},
            narrow={"xaxis.tickfont.size": 9, "yaxis.tickfont.size": 9},
            xaxis=axis(**_tokens(columns, numbered=False), tickangle=-60),
            yaxis=axis(**_tokens(rows, numbered=False), autorange="reversed"),
            **framed(mark),
            uirevision=f"{len(rows)} {len(columns)}",
        ),
    }


def describe_signed(values: np.ndarray, rows: Sequence[str], columns: Sequence[str], name: str = "value") -> str:
    """The largest and the smallest value and where they stand; NaN cells do not count."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).any():
        return "There is nothing to show."
    high = np.unravel_index(int(np.nanargmax(values)), values.shape)
    low = np.unravel_index(int(np.nanargmin(values)), values.shape)
    return (
        f"The largest {name} is {signed(values[high])} ({rows[high[0]]}, {columns[high[1]]}), "
        f"the smallest {signed(values[low])} ({rows[low[0]]}, {columns[low[1]]})."
    )


def head_grid(
    patterns: np.ndarray,
    titles: Sequence[str],
    tokens: Sequence[str] = (),
    *,
    columns: int = 4,
    causal: bool = True,
    quantised: bool = True,
    size: int = 150,
    chosen: int | None = None,
) -> dict[str, Any]:
    """All heads (N, T, T) as small pictures in one figure; a click's `trace` is the head's index.

    Args:
        titles: one short name per head, such as L0 H3.
        tokens: shown on hover where given.
        quantised: send steps of 1/254 (one byte per weight); the page shows two decimals either way.
        size: pixels of height per row of pictures, the title included.
        chosen: index of the head whose picture is framed.
    """
    patterns = np.asarray(patterns, dtype=np.float64)
    count = len(patterns)
    columns = max(1, min(columns, count))
    n_rows = -(-count // columns)
    height = 16 + size * max(1, n_rows)
    gap_x, gap_y = 0.03, 26 / height
    width = (1 - gap_x * (columns - 1)) / columns
    tall = (1 - gap_y * n_rows) / max(1, n_rows)
    labels = _tokens(tokens)["ticktext"] if len(tokens) == patterns.shape[-1] <= _MOST_LABELS else None
    traces, axes, notes, frames = [], {}, [], []
    for i, pattern in enumerate(patterns):
        row, column = divmod(i, columns)
        left = column * (width + gap_x)
        top = 1 - gap_y - row * (tall + gap_y)
        suffix = "" if i == 0 else str(i + 1)
        blanked = _blanked(pattern, causal)
        z, meta = packed(blanked, 0.0, 1.0) if quantised else (numbers(blanked), None)
        where = "query %{y}, key %{x}" if labels is None else "%{y} looks at %{x}"
        trace = {
            "type": "heatmap",
            "z": z,
            "xaxis": f"x{suffix}",
            "yaxis": f"y{suffix}",
            "coloraxis": "coloraxis",
            "hoverongaps": False,
            "name": escaped(titles[i]),
            "hovertemplate": f"{escaped(titles[i])}<br>{where}<br>weight %{{z:.2f}}<extra></extra>",
        }
        traces.append({**trace, "meta": meta} if meta else trace)
        quiet = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "fixedrange": True}
        if labels is not None:
            quiet |= {"tickvals": list(range(len(tokens))), "ticktext": labels}
        axes[f"xaxis{suffix}"] = {
            **quiet,
            "domain": [left, min(1.0, left + width)],
            "anchor": f"y{suffix}",
            "constrain": "domain",
        }
        axes[f"yaxis{suffix}"] = {
            **quiet,
            "domain": [max(0.0, top - tall), top],
            "anchor": f"x{suffix}",
            "autorange": "reversed",
        }
        notes.append(
            {
                "text": escaped(titles[i]),
                "xref": "paper",
                "yref": "paper",
                "x": left,
                "y": top,
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 11, "color": palette.HIGHLIGHT if i == chosen else palette.MUTED},
            }
        )
        if i == chosen:
            frames.append(
                {
                    "type": "rect",
                    "xref": f"x{suffix} domain",
                    "yref": f"y{suffix} domain",
                    "x0": 0,
                    "x1": 1,
                    "y0": 0,
                    "y1": 1,
                    "line": {"color": palette.HIGHLIGHT, "width": 3},
                }
            )
    scale = {"colorscale": colorscale(palette.PATTERN_SCALE), "cmin": 0, "cmax": 1, "showscale": False}
    return {
        "data": traces,
        "layout": layout(
            height,
            margin={"l": 4, "r": 4, "t": 8, "b": 8},
            annotations=notes,
            shapes=frames,
            plot_bgcolor=palette.BAND,
            coloraxis=scale,
            uirevision=str(count),
            **axes,
        ),
    }


def _blanked(pattern: np.ndarray, causal: bool) -> np.ndarray:
    """NaN where a query would look at a later key; the queries are the last of the keys."""
    pattern = np.array(pattern, dtype=np.float64)
    if causal:
        rows, columns = pattern.shape
        pattern[np.arange(columns)[None, :] > np.arange(rows)[:, None] + columns - rows] = np.nan
    return pattern


def written(cells: int) -> dict[str, Any]:
    """What writes each number into its cell, where there are few enough to read."""
    return {"texttemplate": "%{z:.2f}", "textfont": {"size": 11}} if cells <= _MOST_WRITTEN else {}


def framed(cell: tuple[int, int] | None) -> dict[str, Any]:
    """A frame around one cell (row, column) of a map."""
    if cell is None:
        return {}
    row, column = cell
    frame = {"type": "rect", "x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return {"shapes": [{**frame, "line": {"color": palette.HIGHLIGHT, "width": 2.5}}]}


def _sums(pattern: np.ndarray) -> list[dict[str, Any]]:
    """The sum of every row, right of it; of at most about 48 rows."""
    sums = np.asarray(pattern, dtype=np.float64).sum(axis=1)
    place = {"xref": "paper", "x": 1.0, "xanchor": "left", "showarrow": False}
    font = {"size": 10, "color": palette.MUTED}
    stride = max(1, -(-len(sums) // _MOST_LABELS))
    notes = [{**place, "y": row, "text": f"Σ {sums[row]:.2f}", "font": font} for row in range(0, len(sums), stride)]
    return notes


def _map_height(rows: int) -> int:
    return int(min(720, max(220, 110 + 22 * rows)))


def _tokens(texts: Sequence[str], *, offset: int = 0, numbered: bool = True) -> dict[str, Any]:
    """Ticks of a token axis: position and text, at most about 48 of them."""
    stride = max(1, -(-len(texts) // _MOST_LABELS))
    places = range(0, len(texts), stride)
    named = [escaped(shortened(texts[i])) for i in places]
    return {
        "tickvals": list(places),
        "ticktext": [f"{i + offset} {text}" if numbered else text for i, text in zip(places, named)],
        "showgrid": False,
    }
