"""Routing pictures: which experts tokens take, one token's way through the layers, and how even the load is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .wire import axis, colorbar, colorscale, escaped, layout, numbers, shortened

_MOST_LABELS = 48


def expert_color(expert: int) -> str:
    """The colour of an expert; with more than eight they repeat, so its number always stands beside it."""
    return palette.EXPERTS[expert % len(palette.EXPERTS)]


def routing_map(weights: np.ndarray, tokens: Sequence[str], followed: int | None = None) -> dict[str, Any]:
    """Heat map (E, T) of how much each expert counts for each token of one layer; a click's column is the token."""
    E, T = weights.shape
    stride = max(1, -(-T // _MOST_LABELS))
    places = list(range(0, T, stride))
    cells = {
        "type": "heatmap",
        "z": numbers(np.where(weights > 0, weights, np.nan)),
        "customdata": [[f"{t} “{escaped(tokens[t])}”" for t in range(T)]] * E if T * E <= 4096 else None,
        "colorscale": colorscale(palette.SEQUENTIAL_SCALE),
        "zmin": 0,
        "zmax": 1,
        "xgap": 1,
        "ygap": 2,
        "hoverongaps": False,
        "hovertemplate": ("token %{customdata}" if T * E <= 4096 else "token %{x}")
        + ", expert %{y}<br>weight %{z:.4f}<extra></extra>",
        "colorbar": colorbar("weight", tickvals=[0, 0.5, 1]),
    }
    shapes = [] if followed is None else [_frame(followed - 0.5, followed + 0.5, -0.5, E - 0.5)]
    return {
        "data": [{key: value for key, value in cells.items() if value is not None}],
        "layout": layout(
            96 + max(20 * E, 100),
            margin={"l": 8, "r": 8, "t": 8, "b": 8},
            narrow={"xaxis.tickfont.size": 9},
            xaxis=axis(
                tickvals=places, ticktext=[escaped(shortened(tokens[t])) for t in places], tickangle=-60, showgrid=False
            ),
            yaxis=axis("expert", tickvals=list(range(E)), autorange="reversed", showgrid=False, fixedrange=True),
            plot_bgcolor=palette.BAND,
            shapes=shapes,
            uirevision=f"{E} {T}",
        ),
    }


def describe_routing(experts: np.ndarray, weights: np.ndarray, tokens: Sequence[str], layer: int, E: int) -> str:
    """How many experts this text uses in the layer (T, K), the busiest of them, and the most undecided token."""
    T, K = experts.shape
    visits = np.bincount(experts.ravel(), minlength=E)
    busiest = int(visits.argmax())
    words = (
        f"In layer {layer} these {T:,} tokens use {np.count_nonzero(visits)} of {E} experts; expert {busiest} gets "
        f"{100 * visits[busiest] / visits.sum():.0f} % of the visits (even would be {100 / E:.3g} %)."
    )
    if K > 1:
        t = int(weights[:, 0].argmin())
        words += f" The least decided is {t} “{tokens[t]}”: its first choice counts only {weights[t, 0]:.2f}."
    return words


def journey_map(probabilities: np.ndarray, experts: np.ndarray, layers: Sequence[int]) -> dict[str, Any]:
    """One token in every layer: the router's probabilities (L, E), framed where an expert was visited (L, K)."""
    L, E = probabilities.shape
    cells = {
        "type": "heatmap",
        "z": numbers(probabilities),
        "text": [[f"{p:.2f}" for p in row] for row in probabilities],
        "texttemplate": "%{text}" if E <= 16 else "",
        "textfont": {"size": 11},
        "colorscale": colorscale(palette.SEQUENTIAL_SCALE),
        "zmin": 0,
        "zmax": 1,
        "xgap": 3,
        "ygap": 3,
        "hovertemplate": "%{y}, expert %{x}<br>probability %{z:.4f}<extra></extra>",
        "showscale": False,
    }
    frames = [_frame(e - 0.5, e + 0.5, i - 0.5, i + 0.5) for i, row in enumerate(experts) for e in row.tolist()]
    return {
        "data": [cells],
        "layout": layout(
            70 + 38 * L,
            margin={"l": 8, "r": 8, "t": 8, "b": 36},
            narrow={"xaxis.tickfont.size": 9},
            xaxis=axis("expert", tickvals=list(range(E)), showgrid=False, fixedrange=True),
            yaxis=axis(
                tickvals=list(range(L)),
                ticktext=[f"layer {n}" for n in layers],
                autorange="reversed",
                showgrid=False,
                fixedrange=True,
            ),
            shapes=frames,
            uirevision=f"{L} {E}",
        ),
    }


def describe_journey(token: str, position: int, layers: Sequence[int], experts: np.ndarray, weights: np.ndarray) -> str:
    """A token's first choices, layer by layer."""
    way = ", then ".join(
        f"expert {row[0]} ({share[0]:.2f}) in layer {layer}" for layer, row, share in zip(layers, experts, weights)
    )
    return (
        f"Token {position} “{token}” goes first to {way}: their weights, which add up to 1 over the experts visited "
        "(framed). The numbers in the map are the router's probabilities over all experts."
    )


def load_bars(load: np.ndarray) -> dict[str, Any]:
    """Share of visits per expert (E,), with a line where all would be even."""
    E = len(load)
    bars = {
        "type": "bar",
        "x": list(range(E)),
        "y": numbers(load),
        "marker": {"color": [expert_color(e) for e in range(E)]},
        "hovertemplate": "expert %{x}<br>%{y:.1%} of the visits<extra></extra>",
    }
    return {
        "data": [bars],
        "layout": layout(
            220,
            xaxis=axis("expert", tickvals=list(range(E)), showgrid=False, fixedrange=True),
            yaxis=axis("share of visits", tickformat=".0%", rangemode="tozero", fixedrange=True),
            shapes=[_even_line(1 / E)],
            bargap=0.25,
        ),
    }


def load_lines(steps: Sequence[int], load: np.ndarray) -> dict[str, Any]:
    """Share of visits of every expert along a run (records, E), with a line where all would be even."""
    E = load.shape[1]
    dashes = ("solid", "dash", "dot")
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"expert {e}",
            "x": numbers(steps),
            "y": numbers(load[:, e]),
            "line": {"width": 1.8, "color": expert_color(e), "dash": dashes[e // len(palette.EXPERTS) % 3]},
            "hovertemplate": "%{y:.1%}",
        }
        for e in range(E)
    ]
    return {
        "data": lines,
        "layout": layout(
            280,
            showlegend=True,
            legend={"font": {"size": 11, "color": palette.MUTED}},
            narrow={"legend.orientation": "h", "legend.y": -0.3},
            xaxis=axis("optimizer steps"),
            yaxis=axis("share of visits", tickformat=".0%", rangemode="tozero"),
            shapes=[_even_line(1 / E)],
            hovermode="x unified",
            uirevision=str(E),
        ),
    }


def describe_load(
    entropy: float, most: float, busiest: int, share: float, dead: Sequence[int], what: str = "The"
) -> str:
    """How even a load is, and which experts are dead."""
    words = (
        f"{what} load has {entropy:.2f} of at most {most:.2f} bits of entropy, like {2**entropy:.1f} evenly used "
        f"experts; the busiest is expert {busiest} with {100 * share:.0f} %."
    )
    if dead:
        names = ", ".join(map(str, dead))
        return (
            f"{words} Expert{'s' if len(dead) > 1 else ''} {names} get{'' if len(dead) > 1 else 's'} next to nothing."
        )
    return f"{words} No expert is dead."


def _frame(x0: float, x1: float, y0: float, y1: float) -> dict[str, Any]:
    line = {"color": palette.MOE, "width": 2.5}
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": line, "fillcolor": "rgba(0,0,0,0)"}


def _even_line(share: float) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": share,
        "y1": share,
        "line": {"color": palette.MUTED, "width": 1, "dash": "dash"},
    }
