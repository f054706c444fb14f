"""What experts learned, as pictures: bits per layer against nulls, experts by source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..words.numbers import signed
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

MEASURE_NAMES = {
    "total": "the expert alone",
    "beyond": "beyond the token itself",
    "remembered": "from earlier sentences",
}
_COLORS = {"total": palette.FAINT, "beyond": palette.MOE, "remembered": palette.SCORES}
_PATTERNS = {"total": "", "beyond": "/", "remembered": "x"}


NULL_NAMES = {
    "shuffled": "the speakers of other sentences",
    "position": "random experts for every token",
    "before": "the routers before training",
    "random": "random routers on the same stream",
}


def information_bars(layers: Sequence[int], told: Sequence[Mapping[str, Judgement]]) -> Figure:
    """Bits about the source per layer, one bar per measure, with a mark at the most that routers tell untaught.

    Args:
        told: by layer and measure, what the experts tell and what nothing would.
    """
    groups = [f"layer {layer}" for layer in layers]
    hover = "%{x}: %{y:.4f} bits<br>%{customdata}<extra>%{fullData.name}</extra>"
    bars, marks = [], []
    for i, measure in enumerate(told[0]):
        found, group = [layer[measure] for layer in told], {"offsetgroup": measure}
        heights = [left.bits for left in found]
        drawn = bar(heights, groups, _COLORS[measure], hover, name=MEASURE_NAMES[measure], **group)
        drawn["marker"]["pattern"] = {"shape": _PATTERNS[measure], "size": 5, "solidity": 0.25}
        nulls = [
            "<br>".join(f"{NULL_NAMES[name]}: {null.bits:.4f}" for name, null in left.nulls.items()) for left in found
        ]
        bars.append({**drawn, "customdata": nulls})
        # a bar without a body, so that it stands on its own bar: only its edge is drawn, and how far it may be off
        heights = [left.nulls[left.hardest].bits for left in found]
        mark = bar(heights, groups, "rgba(0,0,0,0)", "", name="untrained routers, ±", **group)
        mark["marker"]["line"] = {"color": palette.INK, "width": 1.5}
        error = {
            "type": "data", "array": numbers([left.margin for left in found]), "thickness": 1, "width": 3,
            "color": palette.INK,
        }  # fmt: skip
        saved = {"meta": {"series": f"{MEASURE_NAMES[measure]}: {mark['name'].removesuffix(', ±')}"}}
        look = {"showlegend": i == 0, "legendgroup": "nulls", "hoverinfo": "skip"}
        marks.append({**mark, "error_y": error, **look, **saved})
    return figure(
        [*bars, *marks],
        320,
        margin={"l": 52, "r": 12, "t": 44, "b": 40},
        narrow={"margin.l": 40, "legend.font.size": 9},
        xaxis=axis(showgrid=False, **FIXED),
        yaxis=axis("bits about the source", rangemode="tozero", **FIXED),
        barmode="group",
        bargap=0.25,
        **legend(),
        uirevision=str(len(layers)),
    )


def describe_information(layers: Sequence[int], told: Sequence[Mapping[str, Judgement]]) -> str:
    """Whether the routers learned who speaks, and what that says of attention."""
    clear, below = [], []
    for measure, name in MEASURE_NAMES.items():
        found = [layer[measure] for layer in told]
        left = found[_best(found)]
        clear += [(layers[_best(found)], measure)] if left.is_clear else []
        below += [(each.hardest, name, layer) for layer, each in zip(layers, found) if each.above < -each.margin]
    if clear:
        named = " and ".join(f"{MEASURE_NAMES[measure]} in layer {layer}" for layer, measure in clear)
        words = f"The routing encodes the speaker better than untrained routers do: {named}."
    elif below:
        words = "The routing does not encode the speaker better than untrained routers do."
    else:
        words = "Too close to call: untrained routers encode the speaker about as well."
    if not clear:
        # the stream tells it where routers that were never trained on it do, far beyond luck
        knows, most = max((each["beyond"].nulls["random"].bits, layer) for layer, each in zip(layers, told))
        luck = max(layer["beyond"].nulls["shuffled"].bits for layer in told)
        if knows > 4 * luck + 0.02:
            words += (
                f" Attention has gathered it already: in layer {most}, random routers encode {knows:.2f} bits beyond "
                "the token on average."
            )
    for null in NULL_NAMES:  # of each layer and measure the one that tells most
        places = {name: [x for other, n, x in below if (other, n) == (null, name)] for name in MEASURE_NAMES.values()}
        if any(places.values()):
            away = " There they look away from the speaker." if null == "random" else ""
            those = "; ".join(f"{name} in layer{'s' * (len(x) > 1)} {_listed(x)}" for name, x in places.items() if x)
            words += f" They encode clearly less than {NULL_NAMES[null]}: {those}.{away}"
    return words


def information_details(layers: Sequence[int], told: Sequence[Mapping[str, Judgement]], token_bits: float) -> str:
    """By how much each measure beats the strictest of its controls."""
    parts = []
    for measure, name in MEASURE_NAMES.items():
        found = [layer[measure] for layer in told]
        i = _best(found)
        left = found[i]
        parts.append(
            f"{name}: {left.bits:.3f} bits in layer {layers[i]}, and {left.nulls[left.hardest].bits:.3f} for "
            f"{NULL_NAMES[left.hardest]}; {_rest(left)}"
        )
    words = f"For each measure, in its best layer compared with the best baseline: {'; '.join(parts)}."
    if any("±" in part for part in parts):
        words += " The ± is a 95 % interval for all layers and measures at once, from the spread of untrained routers."
    return f"{words} The token alone encodes {token_bits:.2f} bits."


def _best(found: Sequence[Judgement]) -> int:
    """The layer with the largest lead over its strictest control."""
    return max(range(len(found)), key=lambda i: (found[i].is_clear, found[i].above))


def _rest(left: Judgement) -> str:
    """The lead over the strictest control, or that there is none."""
    if not np.isfinite(left.margin):
        return "too short a text to measure the rest"
    size = f"{signed(left.above, 3, plus=True)} ± {left.margin:.3f}"
    if left.is_clear:
        return f"{size} above it"
    return f"clearly less ({size})" if left.above < -left.margin else f"no clear difference ({size})"


def _listed(numbers: Sequence[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


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


def describe_sources(table: np.ndarray, sources: Sequence[str]) -> str:
    """The expert whose tokens are most often one source's, in words. Random routers have such experts, too."""
    lift = lift_of(table)
    enough = np.where(table.sum(axis=1, keepdims=True) >= 0.02 * table.sum(), lift, np.nan)
    if not np.isfinite(enough).any():
        return "No expert has enough tokens to compare."
    e, s = np.unravel_index(int(np.nanargmax(enough)), enough.shape)
    share = table[e, s] / table[e].sum()
    base = table[:, s].sum() / table.sum()
    rare = np.nanmax(lift) > enough[e, s]
    who = f"Of the experts that are first choice for 2 % of the tokens, expert {e}" if rare else f"Expert {e}"
    return (
        f"{who} stands out most: {100 * share:.0f} % of its tokens are the {sources[s]}'s, who writes "
        f"{100 * base:.0f} % of all {table.sum():,} counted (×{enough[e, s]:.2f}).{_nobodys_first(table)}"
    )


def _nobodys_first(table: np.ndarray) -> str:
    """Why rows of the table are empty: an expert may take many tokens and still be nobody's first choice."""
    empty = [str(e) for e in np.flatnonzero(table.sum(axis=1) == 0)]
    if not empty:
        return ""
    who = f"Expert {empty[0]} is" if len(empty) == 1 else f"Experts {', '.join(empty[:-1])} and {empty[-1]} are"
    return f" {who} no token's first choice here, so there is nothing to count."


def lift_of(table: np.ndarray) -> np.ndarray:
    """P(source | expert) / P(source) of counts (E, S); NaN where an expert or a source never occurs."""
    table = np.asarray(table, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return table * table.sum() / (table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True))
