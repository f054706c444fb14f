"""What experts learned, as pictures: bits per layer against chance, their growth over training, experts by source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import palette
from .shapes import (
    DASHES,
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
    line,
    lines,
    names,
    note,
    rule,
)
from .wire import numbers

MEASURE_NAMES = {
    "total": "the expert alone",
    "beyond": "beyond the token itself",
    "remembered": "from earlier sentences",
}
_COLORS = {"total": palette.FAINT, "beyond": palette.MOE, "remembered": palette.SCORES}
_PATTERNS = {"total": "", "beyond": "/", "remembered": "x"}


def information_bars(layers: Sequence[int], bits: Mapping[str, Sequence[float]], p95: Mapping[str, float]) -> Figure:
    """Bits about the source per layer, one bar per measure, with a mark at what chance exceeds once in twenty."""
    groups = [f"layer {layer}" for layer in layers]
    hover = "%{x}: %{y:.4f} bits<br>chance below %{customdata:.4f}<extra>%{fullData.name}</extra>"
    bars, marks = [], []
    for i, (measure, values) in enumerate(bits.items()):
        chance, group = [p95[measure]] * len(layers), {"offsetgroup": measure}
        texts = [f"{value:.2f}" for value in values]
        drawn = bar(values, groups, _COLORS[measure], hover, name=MEASURE_NAMES[measure], text=texts, **group)
        drawn["marker"]["pattern"] = {"shape": _PATTERNS[measure], "size": 5, "solidity": 0.25}
        bars.append({**drawn, "textfont": {"size": 10}, "customdata": numbers(chance)})
        # a bar without a body, so that it stands on its own bar: only its edge is drawn
        mark = bar(chance, groups, "rgba(0,0,0,0)", "", name="chance (the best layer's 95th percentile)", **group)
        mark["marker"]["line"] = {"color": palette.INK, "width": 1.5}
        marks.append({**mark, "showlegend": i == 0, "legendgroup": "chance", "hoverinfo": "skip"})
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


def describe_information(
    layers: Sequence[int],
    bits: Mapping[str, Sequence[float]],
    p95: Mapping[str, float],
    token_bits: float,
    reader_bits: float,
) -> str:
    """What the best layer tells by each measure, whether chance could, and what a perfect reader would know.

    Args:
        p95: by measure, bits that the best of all layers exceeds by chance once in twenty.
    """
    best = {measure: int(np.argmax(values)) for measure, values in bits.items()}
    telling = {measure: bits[measure][i] > p95[measure] for measure, i in best.items()}

    def told(measure: str) -> str:
        i = best[measure]
        return f"layer {layers[i]} tells {bits[measure][i]:.3f} bits (chance: {p95[measure]:.3f})"

    if telling["total"]:
        words = f"By a token's expert alone, {told('total')} about who speaks."
    else:
        words = "Knowing a token's expert tells no more about who speaks than chance would, in any layer."
    if telling["beyond"]:
        words += f" Beyond the token itself, {told('beyond')}."
    else:
        words += " Beyond the token itself no layer tells more than chance."
    if telling["remembered"]:
        words += (
            f" Where all speakers write the same word, at the openings, {told('remembered')}: only sentences before "
            "can have told it."
        )
    return (
        f"{words} Chance is what the best of all layers exceeds once in twenty times when the same experts are held "
        "against the speakers of other sentences, all shifted along the text. The token alone gives away "
        f"{token_bits:.2f} bits, and a perfect reader of the text would know {reader_bits:.2f}."
    )


def information_lines(records: Sequence[Mapping[str, Any]], measure: str, layers: Sequence[int], p95: float) -> Figure:
    """One measure over training, a line per layer; the dashed line is what the best layer at the end has by chance."""
    colors, steps = (palette.MOE, palette.SCORES, palette.DENSE, *palette.OTHERS[3:]), [r["step"] for r in records]
    curves = [
        line(
            steps, [record[measure][i] for record in records], f"layer {layer}", colors[i % len(colors)],
            dash=DASHES[i % 4], marks=4, hover="%{y:.4f} bits",
        )
        for i, layer in enumerate(layers)
    ]  # fmt: skip
    known = np.isfinite(p95)
    words = note(f"chance, the best layer: {p95:.3f}", x=1, xanchor="right", y=p95, yref="y")
    return lines(
        curves,
        300,
        axis("optimizer steps"),
        axis("bits", rangemode="tozero"),
        annotations=[words] if known else [],
        shapes=[rule(y=p95)] if known else [],
        uirevision=f"{measure} {len(layers)}",
    )


def describe_information_lines(
    records: Sequence[Mapping[str, Any]], measure: str, layers: Sequence[int], p95: float
) -> str:
    """Where a measure began, where it is now, and since when it has stayed above the chance of the last moment."""
    first, last = records[0], records[-1]
    best = int(np.argmax(last[measure]))
    words = (
        f"{MEASURE_NAMES[measure].capitalize()}: layer {layers[best]} went from {first[measure][best]:.3f} bits at "
        f"step {first['step']:,} to {last[measure][best]:.3f} at step {last['step']:,}."
    )
    # a single moment above is luck in one of twenty: what counts is the last one below
    below = max((i for i, record in enumerate(records) if not record[measure][best] > p95), default=-1)
    if below == len(records) - 1:
        return f"{words} At the end it is not above chance ({p95:.3f})."
    if below < 0:
        return f"{words} It was above chance ({p95:.3f}) from the first on."
    return f"{words} It has been above chance ({p95:.3f}) since step {records[below + 1]['step']:,}."


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
    """The expert that most prefers one source, in words."""
    lift = lift_of(table)
    enough = np.where(table.sum(axis=1, keepdims=True) >= 0.02 * table.sum(), lift, np.nan)
    if not np.isfinite(enough).any():
        return "No expert has enough tokens to compare."
    e, s = np.unravel_index(int(np.nanargmax(enough)), enough.shape)
    share = table[e, s] / table[e].sum()
    base = table[:, s].sum() / table.sum()
    return (
        f"Expert {e} prefers the {sources[s]} most: {100 * share:.0f} % of its tokens are the {sources[s]}'s, who "
        f"writes {100 * base:.0f} % of the text (×{enough[e, s]:.2f}).{_nobodys_first(table)}"
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
