"""One helper per shape – heat map, bars, lines – and what stands around them: axes, rules, notes, frames, panels.

The figure functions say what they draw; this file decides how it looks on every page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..words.numbers import signed
from . import palette
from .wire import escaped, numbers, shortened

Figure = dict[str, Any]

MOST_TOKENS_ALONG = 12
"""More tokens than this along the bottom of a map look restless; every n-th is named then."""
MOST_LABELS = 48
"""More labels than this on an axis cannot be read; then only every n-th is drawn."""
SMALL = {"size": 11, "color": palette.MUTED}
UPSIDE_DOWN = {"autorange": "reversed"}  # the first row on top
FIXED = {"fixedrange": True}  # an axis that cannot be zoomed
_CORNER = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}


def figure(
    traces: Sequence[dict[str, Any]],
    height: int,
    *,
    narrow: Mapping[str, Any] | None = None,
    square: bool = False,
    **more: Any,
) -> Figure:
    """A figure with these traces: no template, transparent, a fixed height.

    Args:
        narrow: layout values, by dotted path, for places narrower than 440 pixels, such as {"margin.l": 40}.
        square: whether chart.js makes the picture inside the axes as wide as it is high.
        **more: further layout entries.
    """
    base = {
        "template": "none",
        "height": height,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "color": palette.MUTED},
        "margin": {"l": 52, "r": 12, "t": 12, "b": 40},
        "hoverlabel": {
            "bgcolor": palette.PAPER,
            "bordercolor": palette.GRID,
            "font": {"color": palette.INK, "size": 12},
            "align": "left",
        },
        "showlegend": False,
        "hovermode": "closest",
        "uirevision": "keep",
    }
    # the names in a saved table, for an axis whose labels leave something out
    whole = {key: spec.pop("whole") for key, spec in more.items() if isinstance(spec, dict) and "whole" in spec}
    meta = {"narrow": dict(narrow or {}), "names": whole, "square": square}
    base["meta"] = {key: value for key, value in meta.items() if value}
    return {"data": list(traces), "layout": {**base, **{key: value for key, value in more.items() if value != []}}}


# ---- axes ------------------------------------------------------------------------------------------------------------


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """A quiet axis: pale grid, no zero line, no frame."""
    base: dict[str, Any] = {
        "gridcolor": palette.GRID,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "ticklabelstandoff": 4,
        "tickfont": SMALL,
        "separatethousands": True,
        "automargin": True,
        "ticklabeloverflow": "allow",  # checking which labels to hide takes 40 % of the drawing time; ours have room
    }
    if title:
        base["title"] = {"text": title, "font": {"size": 12, "color": palette.MUTED}, "standoff": 8}
    return {**base, **more}


def names(
    texts: Sequence[str],
    title: str = "",
    *,
    first: int | None = None,
    length: int = 14,
    most: int = MOST_LABELS,
    **more: Any,
):
    """An axis with one place per text, in order. Long texts are shortened, and with `first` numbered from there on.

    If there are more than `most` texts, every nth is named.
    """
    stride = max(1, -(-len(texts) // most))
    places = list(range(0, len(texts), stride))
    labels = [escaped(shortened(str(texts[i]), length)) for i in places]
    labels = labels if first is None else [f"{i + first} {label}" for i, label in zip(places, labels)]
    if stride > 1 or any(len(str(text)) > length for text in texts):
        whole = [escaped(str(text)) for text in texts]
        more["whole"] = whole if first is None else [f"{i + first} {text}" for i, text in enumerate(whole)]
    return axis(title, tickvals=places, ticktext=labels, showgrid=False, **more)


def slanted(texts: Sequence[str], title: str = "", **more: Any) -> dict[str, Any]:
    """An axis of tokens along the bottom, which chart.js slants where they do not fit."""
    return names(texts, title, tickangle=0, **more)


def counted(count: int, title: str, **more: Any) -> dict[str, Any]:
    """An axis for numbered things, such as experts."""
    return axis(title, tickvals=list(range(count)), showgrid=False, **FIXED, **more)


def layers_down(layers: Sequence[int]) -> dict[str, Any]:
    """An axis of layers, the first on top."""
    return names([f"layer {n}" for n in layers], **UPSIDE_DOWN, **FIXED)


def hidden(**more: Any) -> dict[str, Any]:
    """An axis without labels, since the bars carry their numbers."""
    return axis(showgrid=False, showticklabels=False, **FIXED, **more)


def panels(count: int, gap: float = 0.03) -> list[list[float]]:
    """The domains of `count` equal panels side by side."""
    width = (1 - gap * (count - 1)) / count
    return [[i * (width + gap), min(1.0, i * (width + gap) + width)] for i in range(count)]


def nth(letter: str, i: int) -> str:
    """The name of the i-th x or y axis, from 0: x, x2, x3 …"""
    return letter if i == 0 else f"{letter}{i + 1}"


# ---- heat maps -------------------------------------------------------------------------------------------------------


def cells(
    z: Any,
    hover: str,
    *,
    scale: Sequence[tuple[float, str]] = palette.SEQUENTIAL_SCALE,
    ends: tuple[float, float] = (0, 1),
    bar: str | None = None,
    ticks: Mapping[str, Any] | None = None,
    gap: int = 1,
    text: Any = None,
    saved: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The trace of a heat map; NaN cells are blank.

    Args:
        z: numbers (R, C).
        hover: plotly's template for a cell.
        ends: the numbers at the two ends of the scale; a diverging scale is centred on their middle.
        bar, ticks: the colour bar's title and its other plotly settings; None for no bar.
        text: texts (R, C) inside the cells; True for the numbers; None for nothing.
        saved: title → numbers (R, C) for a saved table, if the colours show something else.
    """
    trace = {
        "type": "heatmap",
        "z": z if isinstance(z, dict) else numbers(z),
        "colorscale": [list(stop) for stop in scale],
        "zmin": ends[0],
        "zmax": ends[1],
        "xgap": gap,
        "ygap": gap,
        "hoverongaps": False,
        "hovertemplate": f"{hover}<extra></extra>",
        "showscale": bar is not None,
    }
    if bar is not None:
        trace["colorbar"] = {
            "thickness": 10,
            "outlinewidth": 0,
            "exponentformat": "power",
            "tickfont": SMALL,
            "ticklabelposition": "outside bottom",  # the highest number is not below the title
            "title": {"text": bar, "side": "top", "font": SMALL},
            **(ticks or {}),
        }
    if text is True:
        text = [[signed(value) if np.isfinite(value) else "" for value in row] for row in z]
    if text is not None:
        trace |= {"texttemplate": "%{text}", "textfont": {"size": 11}, "text": text}
    if saved:
        trace["meta"] = {"saved": {title: numbers(values, "f8") for title, values in saved.items()}}
    return {**trace, **{key: value for key, value in more.items() if value is not None}}


def heatmap(
    trace: dict[str, Any],
    height: int,
    x: dict[str, Any],
    y: dict[str, Any],
    *,
    frames: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> Figure:
    """A figure of one heat map with its axes, and frames around some of its cells."""
    more = {"margin": {"l": 8, "r": 8, "t": 8, "b": 8}, **more}
    return figure([trace], int(height), xaxis=x, yaxis=y, shapes=list(frames), **more)


def frame(
    rows: tuple[int, int] | int, columns: tuple[int, int] | int, color: str = palette.HIGHLIGHT, **more: Any
) -> dict[str, Any]:
    """A frame around one cell of a map, or around all from a first to a last row and column."""
    (top, bottom), (left, right) = ((n, n) if isinstance(n, int) else n for n in (rows, columns))
    box = {"x0": left - 0.5, "x1": right + 0.5, "y0": top - 0.5, "y1": bottom + 0.5}
    return {"type": "rect", **box, "line": {"color": color, "width": 2.5}, **more}


def reach(values: Any) -> float:
    """The largest distance from 0 among the finite numbers, for the ends of a diverging scale; 1 if all are 0."""
    sizes = np.abs(np.asarray(values, dtype=np.float64))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0)) or 1.0


# ---- bars ------------------------------------------------------------------------------------------------------------


def bar(
    values: Any,
    places: Any,
    color: str | list[str],
    hover: str,
    *,
    name: str | None = None,
    lying: bool = False,
    text: Sequence[str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A bar for each number at its place; `lying` bars run to the right. `text` is at the bars' ends."""
    along, across = ("x", "y") if lying else ("y", "x")
    trace = {"type": "bar", along: numbers(values, "f8"), across: places, "hovertemplate": hover}
    trace |= {"orientation": "h"} if lying else {}
    trace |= {} if name is None else {"name": name}
    if text is not None:
        ends = {"textposition": "outside", "textangle": 0, "cliponaxis": False}
        trace |= {"text": list(text), **ends, "textfont": SMALL}
    return {**trace, "marker": {"color": color, "line": {"width": 0}}, **more}


# ---- lines -----------------------------------------------------------------------------------------------------------


def line(
    x: Any,
    y: Any,
    name: str,
    color: str,
    *,
    width: float = 2,
    dash: str = "solid",
    hover: str = "%{y:.4f}",
    marks: int | Mapping[str, Any] | None = None,
    exact: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """A line through points; `marks` puts a mark of that size, or of that kind, on each. `exact` keeps 64 bits of x."""
    trace = {
        "type": "scatter",
        "mode": "lines" if marks is None else "lines+markers",
        "x": numbers(x, "f8" if exact else "f4"),
        "y": numbers(y),
        "name": escaped(name),
        "line": {"color": color, "width": width, "dash": dash},
        "hovertemplate": hover,
    }
    if marks is not None:
        trace["marker"] = {"color": color, **({"size": marks} if isinstance(marks, int) else marks)}
        trace["cliponaxis"] = False  # a mark at an axis's end is whole
    return {**trace, **more}


def legend(side: str = "left", **more: Any) -> dict[str, Any]:
    """A legend in a row above the picture, at its left or its right end."""
    row = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": SMALL}
    row |= {"x": 1, "xanchor": "right"} if side == "right" else {}
    return {"showlegend": True, "legend": {**row, **more}}


def lines(traces: Sequence[dict[str, Any]], height: int, x: dict[str, Any], y: dict[str, Any], **more: Any) -> Figure:
    """A figure of lines on two axes, with a legend above and one hover label for all; `more` overrides the layout."""
    more = {"margin": {"l": 52, "r": 12, "t": 36, "b": 44}, **legend(), "hovermode": "x unified", **more}
    narrow = {"margin.l": 42, **more.pop("narrow", {})}
    return figure(traces, height, narrow=narrow, xaxis=x, yaxis=y, **more)


# ---- rules and notes -------------------------------------------------------------------------------------------------


def rule(
    *, x: float | None = None, y: float | None = None, color: str = palette.MUTED, width: float = 1, dash: str = "dash",
    **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """A straight line across the whole picture, at an x or at a y."""
    place = (
        {"xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y}
        if x is None
        else {"yref": "paper", "y0": 0, "y1": 1, "x0": x, "x1": x}
    )
    return {"type": "line", **place, "line": {"color": color, "width": width, "dash": dash}, **more}


def note(text: str, *, color: str = palette.MUTED, size: int = 11, **place: Any) -> dict[str, Any]:
    """A few words at a place in the picture; by default above its left end."""
    return {"text": text, **_CORNER, "showarrow": False, "font": {"size": size, "color": color}, **place}


def recorded() -> dict[str, Any]:
    """The label for a run that happened earlier and ships with the project."""
    return note("recorded", yshift=8, bgcolor=palette.BAND, borderpad=4)
