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

ONLY = 0.75
"""A first choice that counts less than this leaves something to the others."""


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


def describe_routing(experts: np.ndarray, weights: np.ndarray, tokens: Sequence[str], layer: int, E: int) -> str:
    """How many experts this text uses in the layer (T, K), the busiest of them, and the most undecided token."""
    T, K = experts.shape
    visits = np.bincount(experts.ravel(), minlength=E)
    busiest = int(visits.argmax())
    who = "this one token uses" if T == 1 else f"these {T:,} tokens use"
    words = (
        f"In layer {layer} {who} {np.count_nonzero(visits)} of {E} experts. Expert {busiest} gets the most, "
        f"{100 * visits[busiest] / visits.sum():.0f} % (an even share is {100 / E:.3g} %)."
    )
    if K > 1:
        t = int(weights[:, 0].argmin())
        only = "only " * bool(weights[t, 0] < ONLY)
        words += f" Least certain: {t} “{tokens[t]}”, whose first choice gets {only}{weights[t, 0]:.2f} of the weight."
    return words


def journey_map(probabilities: np.ndarray, experts: np.ndarray, layers: Sequence[int]) -> Figure:
    """One token in every layer: the router's probabilities (L, E), framed where an expert was visited (L, K)."""
    L, E = probabilities.shape
    written = [[f"{p:.2f}" for p in row] for row in probabilities] if E <= 16 else None
    visited = [frame(i, e, palette.MOE) for i, row in enumerate(experts) for e in row.tolist()]
    return heatmap(
        cells(probabilities, "%{y}, expert %{x}<br>probability %{z:.4f}", gap=3, text=written),
        70 + 38 * L,
        counted(E, "expert"),
        layers_down(layers),
        frames=visited,
        margin={"l": 8, "r": 8, "t": 8, "b": 36},
        uirevision=f"{L} {E}",
    )


def describe_journey(token: str, position: int, layers: Sequence[int], experts: np.ndarray, weights: np.ndarray) -> str:
    """A token's first choices, layer by layer."""
    way = ", then ".join(
        f"expert {row[0]} ({share[0]:.2f}) in layer {layer}" for layer, row, share in zip(layers, experts, weights)
    )
    return (
        f"Token {position} “{token}” goes to {way}, with its weight in brackets. Framed: the experts it uses. Numbers: "
        "the router's probabilities."
    )


def load_bars(load: np.ndarray, weight: np.ndarray) -> Figure:
    """Shares of visits and of weight per expert (E,), side by side, with a line where all would be even."""
    E = len(load)
    colors, experts = [expert_color(e) for e in range(E)], list(range(E))
    bars = [
        bar(shares, experts, colors, f"expert %{{x}}<br>%{{y:.1%}} of the {name}<extra></extra>", name=name)
        for name, shares in (("tokens", load), ("weight", weight))
    ]
    bars[1]["marker"]["pattern"] = {"shape": "/", "size": 5, "solidity": 0.4}
    return figure(
        bars,
        220,
        xaxis=counted(E, "expert"),
        yaxis=axis("share (of weight: hatched)", tickformat=".0%", rangemode="tozero", **FIXED),
        shapes=[rule(y=1 / E)],
        barmode="group",
        bargap=0.25,
    )


def describe_weights(
    tokens: int,
    load: tuple[float, Sequence[int]],
    weight: tuple[float, Sequence[int]],
    never_first: Sequence[int],
) -> str:
    """How even visits and weight are over this text's tokens, and which experts get hardly any.

    Args:
        tokens: how many there are.
        load, weight: how many evenly used experts would be as even, and who gets next to nothing.
        never_first: experts that are no token's first choice.
    """
    (visits, dead), (heard, unheard) = load, weight
    like = f"{visits:.1f}", f"{heard:.1f}"
    words = f"The load is as even as with {like[0]} equal experts"
    # with one expert per token every visit counts fully
    words += "." if like[0] == like[1] else f"; by weight, as {like[1]}."
    if dead:
        words += f" Not used by {f'any of its {tokens:,} tokens' if tokens != 1 else 'its one token'}: {_listed(dead)}."
    silent = [expert for expert in unheard if expert not in dead]
    if silent:
        words += f" Used, but with hardly any weight: {_listed(silent)}."
    rest = [expert for expert in never_first if expert not in dead]
    if rest:
        words += f" Never a first choice: {_listed(rest)}."
    return words


def _listed(experts: Sequence[int]) -> str:
    *most, last = map(str, experts)
    return f"experts {', '.join(most)} and {last}" if most else f"expert {last}"


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
        axis("optimizer steps"),
        axis("share of tokens", tickformat=".0%", rangemode="tozero"),
        margin={"l": 52, "r": 12, "t": 12, "b": 40},
        legend={"font": SMALL},
        narrow={"legend.orientation": "h", "legend.y": -0.3},
        shapes=[rule(y=1 / E)],
        uirevision=str(E),
    )


def describe_load(
    entropy: float, most: float, busiest: int, share: float, dead: Sequence[int], what: str = "The"
) -> str:
    """How even a load is, and which experts are dead."""
    words = (
        f"{what} load has {entropy:.2f} of at most {most:.2f} bits of entropy, like {2**entropy:.1f} equal experts. "
        f"The busiest is expert {busiest} with {100 * share:.0f} %."
    )
    if dead:
        names = ", ".join(map(str, dead))
        return f"{words} Expert{'s' if len(dead) > 1 else ''} {names} get{'' if len(dead) > 1 else 's'} almost nothing."
    return f"{words} No expert is dead."
