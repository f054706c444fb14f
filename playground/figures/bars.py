"""Plain bars: one number per name, and two numbers per token in panels above each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .wire import axis, escaped, layout, numbers, shortened

_MOST_LABELS = 48


def named_bars(
    names: Sequence[str],
    values: Sequence[float],
    title: str,
    *,
    strong: Sequence[bool] | None = None,
    color: str = palette.DENSE,
) -> dict[str, Any]:
    """Horizontal bars in the given order; those that are not `strong` are pale."""
    strong = [True] * len(names) if strong is None else strong
    rows = list(range(len(names)))
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "x": numbers(values),
                "y": rows,
                "marker": {"color": [color if kept else palette.FAINT for kept in strong]},
                "hovertext": [escaped(name) for name in names],
                "hovertemplate": "%{hovertext}: %{x:.4f}<extra></extra>",
            }
        ],
        "layout": layout(
            60 + 20 * max(1, len(names)),
            margin={"l": 8, "r": 12, "t": 8, "b": 36},
            bargap=0.3,
            xaxis=axis(title, zeroline=True, zerolinecolor=palette.GRID),
            yaxis=axis(
                tickvals=rows,
                ticktext=[escaped(shortened(name, 22)) for name in names],
                autorange="reversed",
                showgrid=False,
                fixedrange=True,
            ),
            uirevision=f"{len(names)} {title}",
        ),
    }


def token_bars(
    labels: Sequence[str], panels: Sequence[tuple[str, np.ndarray]], *, chosen: int | None = None
) -> dict[str, Any]:
    """One bar per token in each panel (title, numbers (T,)); the chosen token's stand out. A click's x is the token."""
    count = len(panels)
    stride = max(1, -(-len(labels) // _MOST_LABELS))
    places = list(range(0, len(labels), stride))
    colors = [palette.HIGHLIGHT if place == chosen else palette.DENSE for place in range(len(labels))]
    traces, axes = [], {}
    for i, (title, values) in enumerate(panels):
        suffix = "" if i == 0 else str(i + 1)
        top = 1 - i / count
        traces.append(
            {
                "type": "bar",
                "y": numbers(values),
                "x": list(range(len(labels))),
                "yaxis": f"y{suffix}",
                "marker": {"color": colors},
                "name": title,
                "hovertext": [escaped(label) for label in labels],
                "hovertemplate": f"%{{hovertext}}<br>{escaped(title)} %{{y:.4f}}<extra></extra>",
            }
        )
        axes[f"yaxis{suffix}"] = axis(title, domain=[max(0.0, top - 1 / count + 0.06), top], nticks=4)
    ticks = {"tickvals": places, "ticktext": [escaped(shortened(labels[i])) for i in places]}
    return {
        "data": traces,
        "layout": layout(
            140 * count + 60,
            margin={"l": 52, "r": 8, "t": 8, "b": 8},
            bargap=0.25,
            xaxis=axis(**ticks, tickangle=-60, showgrid=False, anchor=f"y{'' if count == 1 else count}"),
            uirevision=f"{len(labels)} {count}",
            **axes,
        ),
    }
