"""Routing pictures: which experts tokens take, one token's way through the layers, and how even the load is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from . import palette
from .shapes import FIXED, Figure, axis, bar, cells, counted, figure, frame, heatmap, layers_down, legend, names, rule


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


def load_bars(loads: Mapping[bool, Sequence[float]]) -> Figure:
    """Each expert's share of the load (E,) in a model with balance (True) or without, and a line at an equal share."""
    E = len(next(iter(loads.values())))
    kinds = {True: ("with balance", palette.MOE), False: ("without balance", palette.FAINT)}
    traces = [
        bar(shares, list(range(E)), kinds[kind][1], f"expert %{{x}}: %{{y:.1%}} {kinds[kind][0]}<extra></extra>",
            name=kinds[kind][0])
        for kind, shares in loads.items()
    ]  # fmt: skip
    return figure(
        traces,
        240,
        margin={"l": 48, "r": 8, "t": 30, "b": 40},
        bargap=0.3,
        xaxis=names([str(e) for e in range(E)], "expert", **FIXED),
        yaxis=axis("share of the load", rangemode="tozero", tickformat=".0%", **FIXED),
        shapes=[rule(y=1 / E, color=palette.INK, dash="dot")],
        **legend(),
        uirevision=f"{E} {len(loads)}",
    )
