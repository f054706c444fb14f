"""What experts learned, as pictures: bits per layer against nulls, experts by source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..words.experts import MEASURES, NULLS
from . import palette
from .shapes import (
    FIXED,
    UPSIDE_DOWN,
    Figure,
    axis,
    bar,
    cells,
    counted,
    figure,
    heatmap,
    legend,
    names,
)
from .wire import numbers

if TYPE_CHECKING:
    from ..inspection.nulls import Judgement

_COLORS = {"total": palette.FAINT, "beyond": palette.MOE, "remembered": palette.SCORES}
_PATTERNS = {"total": "", "beyond": "/", "remembered": "x"}


def information_bars(layers: Sequence[int], told: Sequence[Mapping[str, Judgement]]) -> Figure:
    """Bits about the source per layer, one bar per measure, with a mark at the most that routers tell untaught.

    Args:
        told: by layer and measure, what the experts tell and what nothing would.
    """
    groups = [f"layer {layer + 1}" for layer in layers]
    hover = "%{x}: %{y:.4f} bits<br>%{customdata}<extra>%{fullData.name}</extra>"
    bars, marks = [], []
    for i, measure in enumerate(told[0]):
        found, group = [layer[measure] for layer in told], {"offsetgroup": measure}
        heights = [left.bits for left in found]
        drawn = bar(heights, groups, _COLORS[measure], hover, name=MEASURES[measure], **group)
        drawn["marker"]["pattern"] = {"shape": _PATTERNS[measure], "size": 5, "solidity": 0.25}
        nulls = ["<br>".join(f"{NULLS[name]}: {null.bits:.4f}" for name, null in left.nulls.items()) for left in found]
        bars.append({**drawn, "customdata": nulls})
        # a bar without a body, so that it stands on its own bar: only its edge is drawn, and how far it may be off
        heights = [left.nulls[left.hardest].bits for left in found]
        mark = bar(heights, groups, "rgba(0,0,0,0)", "", name="untrained routers, ±", **group)
        mark["marker"]["line"] = {"color": palette.INK, "width": 1.5}
        error = {
            "type": "data", "array": numbers([left.margin for left in found]), "thickness": 1, "width": 3,
            "color": palette.INK,
        }  # fmt: skip
        saved = {"meta": {"series": f"{MEASURES[measure]}: {mark['name'].removesuffix(', ±')}"}}
        look = {"showlegend": i == 0, "legendgroup": "nulls", "hoverinfo": "skip"}
        marks.append({**mark, "error_y": error, **look, **saved})
    return figure(
        [*bars, *marks],
        320,
        margin={"l": 52, "r": 12, "t": 44, "b": 40},
        narrow={"margin.l": 40},
        xaxis=axis(showgrid=False, **FIXED),
        yaxis=axis("bits about the source", rangemode="tozero", **FIXED),
        barmode="group",
        bargap=0.25,
        **legend(),
        uirevision=str(len(layers)),
    )


def source_map(table: np.ndarray, sources: Sequence[str]) -> Figure:
    """Counts (E, S) as a heat map of lift: how much more often than the average a source chooses an expert first."""
    E, S = table.shape
    lift = lift_of(table)
    with np.errstate(divide="ignore"):
        shown = np.clip(np.log2(lift), -2, 2)
    shown = np.where(np.isnan(lift), np.nan, shown)
    written = [
        ["" if np.isnan(value) else f"{int(table[e, s]):,} · ×{value:.2f}" for s, value in enumerate(lift[e])]
        for e in range(E)
    ]
    trace = cells(
        shown,
        "expert %{y}, %{x}<br>%{text}",
        scale=palette.DIVERGING_SCALE,
        ends=(-2, 2),
        gap=2,
        bar="lift",
        ticks={"tickvals": [-2, -1, 0, 1, 2], "ticktext": ["×¼", "×½", "×1", "×2", "×4"]},
        text=written,
        saved={"tokens": table, "lift": lift},
    )
    return heatmap(
        trace,
        76 + 30 * E,
        names(sources, **FIXED),
        counted(E, "expert", **UPSIDE_DOWN),
        margin={"l": 8, "r": 8, "t": 8, "b": 36},
        uirevision=f"{E} {S}",
    )


def lift_of(table: np.ndarray) -> np.ndarray:
    """P(source | expert) / P(source) of counts (E, S); NaN where an expert or a source never occurs."""
    table = np.asarray(table, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return table * table.sum() / (table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True))
