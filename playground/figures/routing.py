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


def load_map(steps: Sequence[int], load: np.ndarray, dead: Sequence[int], planned: int) -> Figure:
    """Heat map of each expert's share of visits (records, E) over a run; crosses mark experts `dead` at its end.

    The colour shows the square root of a share, so that small shares differ visibly from zero. Its scale ends
    at four times an equal share for every run, so that two runs can be compared; its axis at the last `planned` step.
    """
    E = load.shape[1]
    equal = E**-0.5
    trace = cells(
        np.sqrt(load.T),
        "%{y}, step %{x:,.0f}<br>share of load %{customdata:.1%}",
        ends=(0, 2 * equal),
        bar="share of load<br>(root scale)",
        ticks={"tickvals": [0, equal, 2 * equal], "ticktext": ["none", "equal share", "4 times that"]},
        gap=0,
        ygap=1,
        x=numbers(steps),
        customdata=numbers(load.T),
        saved={"": load.T},
    )
    return heatmap(
        trace,
        90 + max(14 * E, 160),
        axis("step", showgrid=False, range=[0, planned], tickformat=",d"),
        names([f"{e} ✕" if e in dead else str(e) for e in range(E)], "expert", **UPSIDE_DOWN, **FIXED),
        uirevision=str(E),
    )
