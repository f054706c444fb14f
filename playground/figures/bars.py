"""Plain bars: one number per name, or several numbers per token in stacked panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .shapes import FIXED, Figure, axis, bar, figure, nth, slanted
from .wire import escaped


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


def signed_bars(values: np.ndarray, x: dict[str, Any], y: str, height: int) -> Figure:
    """Upright bars of signed numbers in their order, over the axis `x`; those above zero stand out."""
    colors = [palette.SCORES if value > 0 else palette.FAINT for value in values]
    return figure(
        [bar(values, list(range(len(values))), colors, "%{x}: %{y:.4f}<extra></extra>")],
        height,
        margin={"l": 58, "r": 8, "t": 6, "b": 42},
        bargap=0.2,
        xaxis=x,
        # with room for its words, plotly need not measure them at each click on a weight
        yaxis=axis(y, zeroline=True, zerolinecolor=palette.GRID, nticks=4, automargin=False, **FIXED),
        uirevision=f"{len(values)}",
    )
