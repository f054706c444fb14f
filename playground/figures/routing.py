"""Routing pictures: which experts tokens take, one token's way through the layers, and how even the load is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import palette
from .shapes import (
    DASHES,
    SMALL,
    Figure,
    axis,
    cells,
    counted,
    frame,
    heatmap,
    layers_down,
    line,
    lines,
    rule,
)


def expert_color(expert: int) -> str:
    """The colour of an expert; with more than eight they repeat, so its number always stands beside it."""
    return palette.EXPERTS[expert % len(palette.EXPERTS)]


def journey_map(weights: np.ndarray, experts: np.ndarray, layers: Sequence[int]) -> Figure:
    """One token in every layer: how much each expert counts (L, E), framed where one was visited (L, K)."""
    L, E = weights.shape
    visited = [frame(i, e, palette.MOE) for i, row in enumerate(experts) for e in row.tolist()]
    used = np.zeros((L, E), dtype=bool)
    np.put_along_axis(used, experts, True, axis=1)
    written = np.where(used, np.char.mod("%.2f", weights), "").tolist() if E <= 16 else None
    return heatmap(
        cells(weights, "%{y}, expert %{x}<br>weight %{z:.4f}", gap=3, text=written),
        70 + 38 * L,
        counted(E, "expert"),
        layers_down(layers),
        frames=visited,
        margin={"l": 8, "r": 8, "t": 8, "b": 36},
        uirevision=f"{L} {E}",
    )


def load_lines(steps: Sequence[int], load: np.ndarray) -> Figure:
    """Share of visits of every expert along a run (records, E), with a line where all would be even."""
    E = load.shape[1]
    curves = [
        line(
            steps, load[:, e], f"expert {e}", expert_color(e), width=1.8, dash=DASHES[e // len(palette.EXPERTS) % 3],
            hover="%{y:.1%}",
        )
        for e in range(E)
    ]  # fmt: skip
    return lines(
        curves,
        280,
        axis("step"),
        axis("share of tokens", tickformat=".0%", rangemode="tozero"),
        margin={"l": 52, "r": 12, "t": 12, "b": 40},
        legend={"font": SMALL},
        narrow={"legend.orientation": "h", "legend.y": -0.3},
        shapes=[rule(y=1 / E)],
        uirevision=str(E),
    )
