"""Routing pictures: which experts tokens take, one token's way through the layers, and how even the load is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import palette
from .shapes import (
    DASHES,
    FIXED,
    SMALL,
    UPSIDE_DOWN,
    Figure,
    axis,
    bar,
    cells,
    counted,
    figure,
    frame,
    heatmap,
    layers_down,
    line,
    lines,
    rule,
    slanted,
)
from .wire import escaped


def expert_color(expert: int) -> str:
    """The colour of an expert; with more than eight they repeat, so its number always stands beside it."""
    return palette.EXPERTS[expert % len(palette.EXPERTS)]


def routing_map(weights: np.ndarray, tokens: Sequence[str], followed: int | None = None) -> Figure:
    """Heat map (E, T) of how much each expert counts for each token of one layer; a click's column is the token."""
    E, T = weights.shape
    few = T * E <= 4096
    trace = cells(
        np.where(weights > 0, weights, np.nan),
        f"token %{{{'customdata' if few else 'x'}}}, expert %{{y}}<br>weight %{{z:.4f}}",
        bar="weight",
        ticks={"tickvals": [0, 0.5, 1]},
        ygap=2,
        customdata=[[f"{t} “{escaped(tokens[t])}”" for t in range(T)]] * E if few else None,
    )
    return heatmap(
        trace,
        96 + max(20 * E, 100),
        slanted(tokens),
        counted(E, "expert", **UPSIDE_DOWN),
        frames=[] if followed is None else [frame((0, E - 1), followed, palette.MOE)],
        plot_bgcolor=palette.BAND,
        uirevision=f"{E} {T}",
    )


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


def load_bars(load: np.ndarray) -> Figure:
    """Shares of visits per expert (E,), with a line where all would be even."""
    E = len(load)
    hover = "expert %{x}<br>%{y:.1%} of the tokens<extra></extra>"
    return figure(
        [bar(load, list(range(E)), [expert_color(e) for e in range(E)], hover)],
        220,
        xaxis=counted(E, "expert"),
        yaxis=axis("share of tokens", tickformat=".0%", rangemode="tozero", **FIXED),
        shapes=[rule(y=1 / E)],
        bargap=0.25,
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
