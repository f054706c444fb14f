"""Plain bars: one number per name, or several numbers per token in stacked panels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import palette
from .shapes import FIXED, UPSIDE_DOWN, Figure, axis, bar, figure, names, nth, slanted
from .wire import escaped


def named_bars(
    labels: Sequence[str],
    values: Sequence[float],
    title: str,
    *,
    strong: Sequence[bool] | None = None,
) -> Figure:
    """Horizontal bars in the given order; those not in `strong` are pale."""
    colors = [palette.DENSE if strong is None or strong[i] else palette.FAINT for i in range(len(labels))]
    hovers = {"hovertext": [escaped(label) for label in labels]}
    rows = list(range(len(labels)))
    return figure(
        [bar(values, rows, colors, "%{hovertext}: %{x:.4f}<extra></extra>", lying=True, **hovers)],
        60 + 20 * max(1, len(labels)),
        margin={"l": 8, "r": 12, "t": 8, "b": 36},
        bargap=0.3,
        xaxis=axis(title, zeroline=True, zerolinecolor=palette.GRID),
        yaxis=names(labels, length=22, **UPSIDE_DOWN, **FIXED),
        uirevision=f"{len(labels)} {title}",
    )


def token_bars(labels: Sequence[str], panels: Sequence[tuple[str, np.ndarray]], *, chosen: int | None = None) -> Figure:
    """One bar per token in each panel (title, numbers (T,)); the chosen token's stand out. A click's x is its token."""
    count, places = len(panels), list(range(len(labels)))
    colors = [palette.HIGHLIGHT if place == chosen else palette.DENSE for place in places]
    hovers = {"hovertext": [escaped(label) for label in labels]}
    traces, axes = [], {}
    for i, (title, values) in enumerate(panels):
        hover, top = f"%{{hovertext}}<br>{escaped(title)} %{{y:.4f}}<extra></extra>", 1 - i / count
        traces.append(bar(values, places, colors, hover, name=title, yaxis=nth("y", i), **hovers))
        axes[nth("yaxis", i)] = axis(title, domain=[max(0.0, top - 1 / count + 0.06), top], nticks=4)
    return figure(
        traces,
        140 * count + 60,
        margin={"l": 52, "r": 8, "t": 8, "b": 8},
        bargap=0.25,
        xaxis=slanted(labels, anchor=nth("y", count - 1)),
        uirevision=f"{len(labels)} {count}",
        **axes,
    )


def product_bars(labels: Sequence[str], values: np.ndarray) -> Figure:
    """Upright bars of signed products in their order; those above zero stand out."""
    colors = [palette.SCORES if value > 0 else palette.FAINT for value in values]
    places = list(range(len(labels)))
    return figure(
        [bar(values, places, colors, "number %{x}: %{y:.4f}<extra></extra>")],
        150,
        margin={"l": 58, "r": 8, "t": 6, "b": 42},
        bargap=0.2,
        # with room for its words, plotly need not measure them at each click on a weight
        xaxis=axis("number of the vector", nticks=9, automargin=False, **FIXED),
        yaxis=axis("q × k", zeroline=True, zerolinecolor=palette.GRID, nticks=4, automargin=False, **FIXED),
        uirevision=f"{len(labels)}",
    )
