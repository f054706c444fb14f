"""Stills: our figures as SVG, for pages that run no scripts. Draws what our lines, bars and maps use, and no more.

Colours are CSS variables with the light colour as their fallback (`colours_css` gives both themes), so that a still
follows light and dark. All words are escaped.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .still_axis import Axis, plain
from .wire import numbers_of

WIDTH = 760
_LETTER = 6.2  # pixels of a letter at 11 px
_DASHES = {"dash": "7 5", "dot": "2 4", "dashdot": "7 4 2 4", "longdash": "11 6"}


def still(figure: dict[str, Any], words: str = "", *, width: int = WIDTH) -> str:
    """One figure as an <svg>, as wide as its place at most; `words` is what it shows, for those who cannot see it."""
    traces, layout = figure["data"], figure["layout"]
    height = int(layout.get("height", 320))
    drawn = layout.get("shapes", ())
    xs, ys = (Axis(layout.get(f"{name}axis") or {}, name, traces, drawn) for name in "xy")
    legend = [t for t in traces if t.get("name")] if layout.get("showlegend") else []
    margin = {"l": 10, "r": 12, "t": 12, "b": 40, **layout.get("margin", {})}
    if ys.labelled:
        longest = max((len(label) for _, label in ys.ticks()), default=0)
        margin["l"] = max(margin["l"], 14 + _LETTER * longest) + (16 if ys.title else 0)
    margin["b"] = max(margin["b"], (26 if xs.labelled else 8) + (16 if xs.title else 0))
    margin["t"] = max(margin["t"], 26 if legend else 0)
    left, right, top, bottom = margin["l"], width - margin["r"], margin["t"], height - margin["b"]
    xs.place(left, right)
    ys.place(bottom, top)
    parts = [_grid(xs, ys, left, right, top, bottom)]
    shapes = [_shape(s, xs, ys, (left, right, top, bottom)) for s in drawn]
    parts += shapes
    bars = [t for t in traces if t["type"] == "bar"]
    for trace in traces:
        if trace["type"] == "scatter":
            parts.append(_lines(trace, xs, ys))
        elif trace["type"] == "heatmap":
            parts.append(_map(trace, xs, ys))
        elif trace["type"] == "bar":
            parts.append(_bars(trace, xs, ys, bars.index(trace), len(bars), layout.get("bargap", 0.3)))
    parts += [_note(a, xs, ys, (left, right, top, bottom)) for a in layout.get("annotations", ())]
    parts.append(_legend(legend, right, top - 12))
    label = html.escape(words or "A chart", quote=True)
    return (
        f'<svg class="still" viewBox="0 0 {width} {height}" role="img" aria-label="{label}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def colours_css() -> str:
    """The palette as variables: light, and dark where the reader's system is dark."""
    light = " ".join(f"--c{color[1:]}: {color};" for color in palette.DARK)
    dark = " ".join(f"--c{color[1:]}: {partner};" for color, partner in palette.DARK.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"


def colour(value: str) -> str:
    """A colour of the palette as its variable; any other, if it is one, as it is."""
    if value in palette.DARK:
        return f"var(--c{value[1:]}, {value})"
    return value if re.fullmatch(r"#[0-9a-fA-F]{3,8}|rgba?\([0-9., ]+\)", value) else "currentColor"


# ---- marks -----------------------------------------------------------------------------------------------------------


def _grid(xs: Axis, ys: Axis, left: float, right: float, top: float, bottom: float) -> str:
    parts = []
    for value, label in ys.ticks():
        y = ys.pixel(value)
        if not top - 1 <= y <= bottom + 1:
            continue
        if ys.spec.get("showgrid", True):
            parts.append(_line(left, y, right, y, palette.GRID))
        if ys.labelled:
            parts.append(_words(left - 6, y + 4, label, palette.MUTED, "end"))
    for value, label in xs.ticks():
        x = xs.pixel(value)
        if not left - 1 <= x <= right + 1:
            continue
        if xs.spec.get("showgrid", True):
            parts.append(_line(x, top, x, bottom, palette.GRID))
        if xs.labelled:
            parts.append(_words(x, bottom + 16, label, palette.MUTED, "middle"))
    if xs.title:
        parts.append(_words((left + right) / 2, bottom + 34, plain(xs.title), palette.MUTED, "middle", 12))
    if ys.title:
        middle = (top + bottom) / 2
        parts.append(
            f'<g transform="rotate(-90 14 {middle:.1f})">'
            + _words(14, middle, plain(ys.title), palette.MUTED, "middle", 12)
            + "</g>"
        )
    return "".join(parts)


def _lines(trace: dict[str, Any], xs: Axis, ys: Axis) -> str:
    points = list(zip(xs.values(trace.get("x")), ys.values(trace.get("y"))))
    mode, line = trace.get("mode", "lines"), trace.get("line") or {}
    ink = line.get("color") or (trace.get("marker") or {}).get("color") or palette.DENSE
    opacity = float(trace.get("opacity", 1.0))
    parts = []
    if "lines" in mode:
        pieces, piece = [], []
        for x, y in [*points, (math.nan, math.nan)]:
            if math.isfinite(x) and math.isfinite(y):
                piece.append(f"{xs.pixel(x):.1f},{ys.pixel(y):.1f}")
            elif piece:
                pieces.append(piece)
                piece = []
        dash = _DASHES.get(line.get("dash", "solid"))
        dashed = f" stroke-dasharray: {dash};" if dash else ""
        parts += [
            f'<polyline points="{" ".join(piece)}" style="fill: none; stroke: {colour(ink)}; '
            f'stroke-width: {float(line.get("width", 2))}; opacity: {opacity};{dashed} stroke-linejoin: round"/>'
            for piece in pieces
        ]
    if "markers" in mode:
        size = (trace.get("marker") or {}).get("size", 5)
        radius = (float(size) if isinstance(size, (int, float)) else 5.0) / 2
        parts += [
            f'<circle cx="{xs.pixel(x):.1f}" cy="{ys.pixel(y):.1f}" r="{radius}" style="fill: {colour(ink)}"/>'
            for x, y in points
            if math.isfinite(x) and math.isfinite(y)
        ]
    return "".join(parts)


def _bars(trace: dict[str, Any], xs: Axis, ys: Axis, index: int, count: int, gap: float) -> str:
    lying = trace.get("orientation") == "h"
    along, across = (xs, ys) if lying else (ys, xs)
    lengths, places = along.values(trace.get("x" if lying else "y")), across.values(trace.get("y" if lying else "x"))
    marker, texts = trace.get("marker") or {}, trace.get("text")
    inks = marker.get("color", palette.DENSE)
    width = (1 - gap) / count
    parts = []
    for i, (length, place) in enumerate(zip(lengths, places)):
        if not (math.isfinite(length) and math.isfinite(place)):
            continue
        begin = place - (1 - gap) / 2 + index * width
        a, b = sorted((across.pixel(begin), across.pixel(begin + width * 0.94)))
        c, d = sorted((along.pixel(0.0), along.pixel(length)))
        x, y, w, h = (c, a, d - c, b - a) if lying else (a, c, b - a, d - c)
        ink = inks if isinstance(inks, str) else inks[i]
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0.5):.1f}" height="{max(h, 0.5):.1f}" rx="1.5" '
            f'style="fill: {colour(ink)}; opacity: {float(marker.get("opacity", 1.0))}"/>'
        )
        if isinstance(texts, (list, tuple)) and i < len(texts) and lying:
            parts.append(_words(d + 5, (a + b) / 2 + 4, plain(texts[i]), palette.MUTED, "start"))
    return "".join(parts)


def _map(trace: dict[str, Any], xs: Axis, ys: Axis) -> str:
    z = np.asarray(numbers_of(trace["z"]), float)
    columns, rows = xs.values(trace["x"]), ys.values(trace["y"])
    finite = z[np.isfinite(z)]
    low = float(trace.get("zmin", finite.min() if finite.size else 0.0))
    high = float(trace.get("zmax", finite.max() if finite.size else 1.0))
    scale = trace.get("colorscale") or palette.SEQUENTIAL_SCALE
    x_edges, y_edges = _edges([xs.pixel(c) for c in columns]), _edges([ys.pixel(r) for r in rows])
    parts = []
    for i in range(len(rows)):
        for j in range(len(columns)):
            if not math.isfinite(z[i, j]):
                continue
            ink = _mixed(scale, (z[i, j] - low) / ((high - low) or 1.0))
            (x0, x1), (y0, y1) = sorted(x_edges[j]), sorted(y_edges[i])
            parts.append(
                f'<rect x="{x0:.1f}" y="{y0 + 0.5:.1f}" width="{x1 - x0 + 0.3:.1f}" height="{y1 - y0 - 1:.1f}" '
                f'style="fill: {ink}"/>'
            )
    return "".join(parts)


def _edges(middles: list[float]) -> list[tuple[float, float]]:
    """Where each cell begins and ends, half-way to its neighbours."""
    if len(middles) < 2:
        return [(m - 20, m + 20) for m in middles]
    between = [(a + b) / 2 for a, b in zip(middles, middles[1:])]  # noqa: RUF007
    bounds = [2 * middles[0] - between[0], *between, 2 * middles[-1] - between[-1]]
    return list(zip(bounds, bounds[1:]))  # noqa: RUF007


def _mixed(scale: Sequence[Sequence[Any]], share: float) -> str:
    """A colour between two stops of a scale."""
    share = min(max(share, 0.0), 1.0)
    for (a, one), (b, two) in zip(scale, scale[1:]):  # noqa: RUF007
        if share <= b:
            part = 100 * (share - a) / ((b - a) or 1.0)
            return f"color-mix(in srgb, {colour(two)} {part:.0f}%, {colour(one)})"
    return colour(scale[-1][1])


def _shape(shape: dict[str, Any], xs: Axis, ys: Axis, box: tuple[float, float, float, float]) -> str:
    left, right, top, bottom = box

    def at(axis: Axis, name: str, first: float, last: float) -> float:
        if shape.get(f"{axis.letter}ref") == "paper":
            return first + float(shape[name]) * (last - first)
        return axis.pixel(axis.values([shape[name]])[0])  # shapes, unlike notes, are placed by numbers on a log axis

    x0, x1 = at(xs, "x0", left, right), at(xs, "x1", left, right)
    y0, y1 = at(ys, "y0", bottom, top), at(ys, "y1", bottom, top)
    line = shape.get("line") or {}
    if shape.get("type") != "line":
        fill = colour(shape.get("fillcolor", palette.BAND))
        return (
            f'<rect x="{min(x0, x1):.1f}" y="{min(y0, y1):.1f}" width="{abs(x1 - x0):.1f}" '
            f'height="{abs(y1 - y0):.1f}" style="fill: {fill}; opacity: {float(shape.get("opacity", 0.5))}"/>'
        )
    return _line(x0, y0, x1, y1, line.get("color", palette.FAINT), line.get("width", 1), line.get("dash", "solid"))


def _note(note: dict[str, Any], xs: Axis, ys: Axis, box: tuple[float, float, float, float]) -> str:
    left, right, top, bottom = box
    x, y = float(note.get("x", 0)), float(note.get("y", 0))
    x = left + x * (right - left) if note.get("xref") == "paper" else xs.pixel(x)
    y = bottom + y * (top - bottom) if note.get("yref") == "paper" else ys.pixel(y)
    down = {"bottom": -4, "middle": 4, "top": 13}.get(note.get("yanchor", "middle"), 4)
    anchor = {"left": "start", "right": "end"}.get(note.get("xanchor", "center"), "middle")
    ink = (note.get("font") or {}).get("color", palette.MUTED)
    x, y = x + float(note.get("xshift", 0)), y - float(note.get("yshift", 0)) + down
    return _words(x, y, plain(note.get("text", "")), ink, anchor)


def _legend(traces: Sequence[dict[str, Any]], right: float, y: float) -> str:
    """Names of the traces in one row, the last one at the right."""
    parts, x = [], right
    for trace in reversed(traces):
        name = plain(trace["name"])
        x -= _LETTER * len(name)
        parts.append(_words(x, y + 4, name, palette.MUTED, "start"))
        line, ink = trace.get("line") or {}, (trace.get("marker") or {}).get("color")
        ink = line.get("color") or (ink if isinstance(ink, str) else (ink or [palette.DENSE])[0])
        width = 9 if trace["type"] == "bar" else line.get("width", 2)
        parts.append(_line(x - 26, y, x - 6, y, ink, width, line.get("dash", "solid")))
        x -= 42
    return "".join(parts)


def _line(x0: float, y0: float, x1: float, y1: float, ink: str, width: float = 1, dash: str = "solid") -> str:
    dashed = f"; stroke-dasharray: {_DASHES[dash]}" if dash in _DASHES else ""
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" '
        f'style="stroke: {colour(ink)}; stroke-width: {float(width)}{dashed}"/>'
    )


def _words(x: float, y: float, text: str, ink: str, anchor: str, size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'style="fill: {colour(ink)}; font-size: {size}px">{html.escape(text)}</text>'
    )
