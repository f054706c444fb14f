"""What experts learned, as pictures: bits per layer against chance, their growth over training, experts by source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import palette
from .wire import axis, colorbar, colorscale, escaped, layout, numbers

MEASURE_NAMES = {
    "total": "the expert alone",
    "beyond": "beyond the token itself",
    "remembered": "from earlier sentences",
}
_COLORS = {"total": palette.FAINT, "beyond": palette.MOE, "remembered": palette.SCORES}
_PATTERNS = {"total": "", "beyond": "/", "remembered": "x"}


def information_bars(
    layers: Sequence[int], bits: Mapping[str, Sequence[float]], p95: Mapping[str, float]
) -> dict[str, Any]:
    """Bits about the source per layer, one bar per measure, with a mark at what chance exceeds once in twenty."""
    names = [f"layer {layer}" for layer in layers]
    bars = [
        {
            "type": "bar",
            "name": MEASURE_NAMES[measure],
            "x": names,
            "y": numbers(values),
            "text": [f"{value:.2f}" for value in values],
            "textposition": "outside",
            "textfont": {"size": 10},
            "cliponaxis": False,
            "marker": {
                "color": _COLORS[measure],
                "pattern": {"shape": _PATTERNS[measure], "size": 5, "solidity": 0.25},
            },
            "customdata": numbers([p95[measure]] * len(layers)),
            "hovertemplate": "%{x}: %{y:.4f} bits<br>chance below %{customdata:.4f}<extra>%{fullData.name}</extra>",
            "offsetgroup": measure,
        }
        for measure, values in bits.items()
    ]
    marks = [
        {
            "type": "bar",  # a bar without a body, so that it stands on its own bar: only its error bar is drawn
            "name": "chance (the best layer's 95th percentile)",
            "showlegend": i == 0,
            "legendgroup": "chance",
            "x": names,
            "y": numbers([p95[measure]] * len(layers)),
            "marker": {"color": "rgba(0,0,0,0)", "line": {"color": palette.INK, "width": 1.5}},
            "hoverinfo": "skip",
            "offsetgroup": measure,
        }
        for i, measure in enumerate(bits)
    ]
    return {
        "data": [*bars, *marks],
        "layout": layout(
            320,
            margin={"l": 52, "r": 12, "t": 44, "b": 40},
            narrow={"margin.l": 40, "legend.font.size": 9},
            xaxis=axis(fixedrange=True, showgrid=False),
            yaxis=axis("bits about the source", rangemode="tozero", fixedrange=True),
            barmode="group",
            bargap=0.25,
            showlegend=True,
            legend={
                "orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom",
                "font": {"size": 11, "color": palette.MUTED},
            },
            uirevision=str(len(layers)),
        ),
    }  # fmt: skip


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


def information_lines(
    records: Sequence[Mapping[str, Any]], measure: str, layers: Sequence[int], p95: float
) -> dict[str, Any]:
    """One measure over training, a line per layer; the dashed line is what the best layer at the end has by chance."""
    dashes = ("solid", "dash", "dot", "dashdot")
    colors = (palette.MOE, palette.SCORES, palette.DENSE, *palette.OTHERS[3:])
    lines = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": f"layer {layer}",
            "x": numbers([record["step"] for record in records]),
            "y": numbers([record[measure][i] for record in records]),
            "line": {"width": 2, "color": colors[i % len(colors)], "dash": dashes[i % len(dashes)]},
            "marker": {"size": 4},
            "hovertemplate": "%{y:.4f} bits",
        }
        for i, layer in enumerate(layers)
    ]
    return {
        "data": lines,
        "layout": layout(
            300,
            showlegend=True,
            margin={"l": 52, "r": 12, "t": 36, "b": 44},
            legend={
                "orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom",
                "font": {"size": 11, "color": palette.MUTED},
            },
            xaxis=axis("optimizer steps"),
            yaxis=axis("bits", rangemode="tozero"),
            **(_chance_line(p95) if np.isfinite(p95) else {}),
            hovermode="x unified",
            uirevision=f"{measure} {len(layers)}",
        ),
    }  # fmt: skip


def _chance_line(p95: float) -> dict[str, Any]:
    return {
        "annotations": [{
            "text": f"chance, the best layer: {p95:.3f}", "xref": "paper", "x": 1, "xanchor": "right", "y": p95,
            "yanchor": "bottom", "showarrow": False, "font": {"size": 11, "color": palette.MUTED},
        }],
        "shapes": [{
            "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": p95, "y1": p95,
            "line": {"color": palette.MUTED, "width": 1, "dash": "dash"},
        }],
    }  # fmt: skip


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


def source_map(table: np.ndarray, sources: Sequence[str]) -> dict[str, Any]:
    """Counts (E, S) as a heat map of lift: how much more often than the average a source chooses an expert first."""
    E, S = table.shape
    lift = lift_of(table)
    with np.errstate(divide="ignore"):
        shown = np.clip(np.log2(lift), -2, 2)
    shown = np.where(np.isnan(lift), np.nan, shown)
    cells = {
        "type": "heatmap",
        "z": numbers(shown),
        "text": [
            ["" if np.isnan(value) else f"{int(table[e, s]):,} · ×{value:.2f}" for s, value in enumerate(lift[e])]
            for e in range(E)
        ],
        "texttemplate": "%{text}",
        "textfont": {"size": 11},
        "colorscale": colorscale(palette.DIVERGING_SCALE),
        "zmin": -2,
        "zmax": 2,
        "xgap": 2,
        "ygap": 2,
        "hoverongaps": False,
        "hovertemplate": "expert %{y}, %{x}<br>%{text}<extra></extra>",
        "colorbar": colorbar("lift", tickvals=[-2, -1, 0, 1, 2], ticktext=["×¼", "×½", "×1", "×2", "×4"]),
    }
    return {
        "data": [cells],
        "layout": layout(
            76 + 30 * E,
            margin={"l": 8, "r": 8, "t": 8, "b": 36},
            narrow={"xaxis.tickfont.size": 9},
            xaxis=axis(
                tickvals=list(range(S)), ticktext=[escaped(s) for s in sources], showgrid=False, fixedrange=True
            ),
            yaxis=axis("expert", tickvals=list(range(E)), autorange="reversed", showgrid=False, fixedrange=True),
            uirevision=f"{E} {S}",
        ),
    }


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
