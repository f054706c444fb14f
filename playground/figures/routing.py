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
    bar,
    cells,
    counted,
    figure,
    frame,
    heatmap,
    layers_down,
    legend,
    line,
    names,
    rule,
    slanted,
)
from .wire import escaped, numbers


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


def load_bars(load: np.ndarray, weight: np.ndarray, dead: Sequence[int], unheard: Sequence[int]) -> Figure:
    """Shares of visits and of weight per expert (E,), side by side, with a line where all would be even.

    A cross stands on each expert that is `dead`, a ring on each other one that is `unheard`: with hardly any weight.
    """
    E = len(load)
    colors, experts = [expert_color(e) for e in range(E)], list(range(E))
    bars = [
        bar(shares, experts, colors, f"expert %{{x}}<br>%{{y:.1%}} of the {name}<extra></extra>", name=name)
        | {"showlegend": False}
        for name, shares in (("tokens", load), ("weight", weight))
    ]
    bars[1]["marker"]["pattern"] = {"shape": "/", "size": 5, "solidity": 0.4}
    marked = [
        line(
            which, np.zeros(len(which)), name, palette.INK, mode="markers", cliponaxis=False, hover=name,
            marks={"symbol": symbol, "size": 9, "line": {"width": 2, "color": palette.INK}},
        )
        for which, name, symbol in (
            (dead, "unused", "x-thin"),
            ([e + 0.19 for e in unheard if e not in dead], "hardly any weight", "circle-open"),  # on the second bar
        )
        if which
    ]  # fmt: skip
    return figure(
        [*bars, *marked],
        240,
        xaxis=counted(E, "expert"),
        yaxis=axis("share (of weight: hatched)", tickformat=".0%", rangemode="tozero", **FIXED),
        shapes=[rule(y=1 / E)],
        barmode="group",
        bargap=0.25,
        margin={"l": 52, "r": 12, "t": 32, "b": 40},
        **(legend() if marked else {}),
    )


def load_map(steps: Sequence[int], load: np.ndarray, dead: Sequence[int]) -> Figure:
    """Share of visits of every expert along a run (records, E), expert × step; crosses mark those `dead` at its end."""
    E = load.shape[1]
    trace = cells(
        load.T,
        "%{y}, step %{x:,.0f}<br>%{z:.1%} of tokens",
        ends=(0, max(2 / E, float(load.max()))),
        bar="share of tokens",
        ticks={"tickformat": ".0%"},
        gap=0,
        ygap=1,
        x=numbers(steps),
    )
    return heatmap(
        trace,
        90 + max(14 * E, 160),
        axis("step", showgrid=False),
        names([f"{e} ✕" if e in dead else str(e) for e in range(E)], "expert", **UPSIDE_DOWN, **FIXED),
        uirevision=str(E),
    )
