"""Routing pictures: which experts tokens take, one token's way through the layers, and how even the load is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import palette
from .shapes import (
    FIXED,
    UPSIDE_DOWN,
    Figure,
    axis,
    cells,
    counted,
    frame,
    heatmap,
    layers_down,
    names,
    note,
)
from .wire import numbers


def journey_map(weights: np.ndarray, experts: np.ndarray, layers: Sequence[int]) -> Figure:
    """One token in every layer: each expert's weight (L, E), with frames around the experts used (L, K)."""
    L, E = weights.shape
    visited = [frame(i, e, palette.MOE) for i, row in enumerate(experts) for e in row.tolist()]
    used = np.zeros((L, E), dtype=bool)
    np.put_along_axis(used, experts, True, axis=1)
    written = np.where(used, np.char.mod("%.2f", weights), "").tolist() if E <= 16 else None
    return heatmap(
        cells(weights, "%{y}, expert %{x}<br>weight %{z:.4f}", text=written),
        70 + 38 * L,
        counted(E, "expert"),
        layers_down(layers),
        frames=visited,
        plot_bgcolor=palette.GRID,
        margin={"l": 8, "r": 8, "t": 8, "b": 36},
        uirevision=f"{L} {E}",
    )


def load_map(
    steps: Sequence[int], load: np.ndarray, dead: Sequence[int], planned: int, title: str, bar: bool = True
) -> Figure:
    """Heat map of each expert's share of visits (records, E) at the first of these steps; crosses mark `dead` experts.

    The colour shows how far a share is above or below an equal one, up to four times either way. The scale is the same
    for all runs, so two maps side by side need one colour `bar`.
    """
    E = load.shape[1]
    load = np.pad(load, ((0, len(steps) - len(load)), (0, 0)), constant_values=np.nan)
    half = (steps[1] - steps[0]) / 2 if len(steps) > 1 else 0.5  # a cell
    named = "expert, ✕ almost unused" if dead else "expert"
    trace = cells(
        np.log2(np.clip(load.T * E, 1 / 4, 4)),
        "%{y}, step %{x:,.0f}<br>share of load %{customdata:.1f}\u00a0%",
        scale=palette.DIVERGING_SCALE,
        ends=(-2, 2),
        bar="" if bar else None,
        ticks={
            "tickvals": [-2, 0, 2], "ticktext": ["¼ or less", "equal share", "4 × or more"],
            "ticklabelposition": "outside", "orientation": "h", "lenmode": "pixels", "len": 220, "thickness": 8,
            "x": 0, "xanchor": "left", "xpad": 0, "yref": "container", "y": 1, "yanchor": "top", "ypad": 4,
        },
        gap=0,
        ygap=1,
        x=numbers(steps),
        customdata=numbers(100 * load.T),
        saved={"": load.T},
    )  # fmt: skip
    return heatmap(
        trace,
        120 + 24 * bar + max(14 * E, 160),
        axis("step", showgrid=False, range=[steps[0] - half, planned + half], tickformat=",d"),
        names([f"{e} ✕" if e in dead else str(e) for e in range(E)], named, **UPSIDE_DOWN, **FIXED),
        margin={"l": 8, "r": 8, "t": 44 + 24 * bar, "b": 8},
        annotations=[note(title, color=palette.INK, size=14, yshift=8)],
        uirevision=str(E),
    )
