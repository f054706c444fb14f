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
    layers: Sequence[int], bits: Mapping[str, Sequence[float]], p95: Mapping[str, Sequence[float]]
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
            "customdata": numbers(p95[measure]),
            "hovertemplate": "%{x}: %{y:.4f} bits<br>chance below %{customdata:.4f}<extra>%{fullData.name}</extra>",
            "offsetgroup": measure,
        }
        for measure, values in bits.items()
    ]
    marks = [
        {
            "type": "bar",  # a bar without a body, so that it stands on its own bar: only its error bar is drawn
            "name": "chance (95th percentile)",
            "showlegend": i == 0,
            "legendgroup": "chance",
            "x": names,
            "y": numbers(p95[measure]),
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
    p95: Mapping[str, Sequence[float]],
    token_bits: float,
    reader_bits: float,
) -> str:
    """What the experts tell, whether chance could, and what a perfect reader would know."""
    best = int(np.argmax(bits["total"]))
    words = (
        f"Knowing a token's expert in layer {layers[best]} tells {bits['total'][best]:.3f} bits about who speaks "
        f"(shuffled speakers stay below {p95['total'][best]:.3f} in 95 of 100 tries)."
    )
    deep = int(np.argmax(bits["beyond"]))
    if bits["beyond"][deep] > p95["beyond"][deep]:
        words += (
            f" Beyond the token itself, layer {layers[deep]} tells most: {bits['beyond'][deep]:.3f} bits "
            f"(chance {p95['beyond'][deep]:.3f})."
        )
    else:
        words += " Beyond the token itself no layer tells more than chance: these routers look at the token alone."
    memory = int(np.argmax(bits["remembered"]))
    if bits["remembered"][memory] > p95["remembered"][memory]:
        words += (
            f" Where all speakers write the same word, at the openings, layer {layers[memory]} still tells "
            f"{bits['remembered'][memory]:.3f} bits: it remembers who spoke before."
        )
    return (
        f"{words} For comparison, the token alone gives away {token_bits:.2f} bits, and a perfect reader of the text "
        f"would know {reader_bits:.2f}."
    )


def information_lines(
    records: Sequence[Mapping[str, Any]], measure: str, layers: Sequence[int], p95: Sequence[float]
) -> dict[str, Any]:
    """One measure over training, a line per layer; the dashed line is the largest of the layers' chance levels."""
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
    chance = max(p95, default=0.0)
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
            annotations=[
                {
                    "text": f"chance: below {chance:.3f} in every layer", "xref": "paper", "x": 1, "xanchor": "right",
                    "y": chance, "yanchor": "bottom", "showarrow": False, "font": {"size": 11, "color": palette.MUTED},
                }
            ],
            shapes=[
                {
                    "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": chance, "y1": chance,
                    "line": {"color": palette.MUTED, "width": 1, "dash": "dash"},
                }
            ],
            hovermode="x unified",
            uirevision=f"{measure} {len(layers)}",
        ),
    }  # fmt: skip


def describe_information_lines(
    records: Sequence[Mapping[str, Any]], measure: str, layers: Sequence[int], p95: Sequence[float]
) -> str:
    """Where a measure began, where it is now, and when it first rose above chance."""
    first, last = records[0], records[-1]
    best = int(np.argmax(last[measure]))
    words = (
        f"{MEASURE_NAMES[measure].capitalize()}: layer {layers[best]} went from {first[measure][best]:.3f} bits at "
        f"step {first['step']:,} to {last[measure][best]:.3f} at step {last['step']:,}."
    )
    above = next((r["step"] for r in records if r[measure][best] > p95[best]), None)
    if above is None:
        return f"{words} It never rose above chance ({p95[best]:.3f})."
    if above == first["step"]:
        return (
            f"{words} It was above chance ({p95[best]:.3f}) from the first: the token gives that much away by itself."
        )
    return f"{words} It is above chance ({p95[best]:.3f}) from step {above:,} on."


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
