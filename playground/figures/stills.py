"""Stills: our figures drawn without a browser, as SVG for pages that run no scripts and as PNG for places without SVG.

Draws one pair of axes with the lines, bars, maps, rules and notes of `shapes`, and no more. In an SVG, colours are CSS
variables with the light colour as their fallback (`colours_css` gives both themes), so that it follows light and dark.
"""

from __future__ import annotations

import html
import io
import re
import threading
import warnings
from typing import Any

import numpy as np

from . import palette
from .shapes import Figure
from .wire import numbers_of

_DASHES = {"dash": (4, 3), "dot": (1, 2), "dashdot": (4, 2, 1, 2)}
_STEPS = 32
"""Colours between two stops of a scale."""
_MARKUP = re.compile(r"</?(?:b|i|sup|sub|span|br)\b[^>]*>")
_drawing = threading.Lock()  # matplotlib's fonts are not made for several threads


def still(figure: Figure, words: str = "", *, width: int = 760) -> str:
    """One figure as an <svg>, as wide as its place at most; `words` is what it shows, for those who cannot see it."""
    svg = _saved(figure, width, "svg").decode()
    svg = re.sub(r"<metadata>.*?</metadata>|(?<=<g) id=\"[^\"]*\"", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    mixed = {light: css for trace in figure["data"] for light, css in _mixtures(trace).items()}
    svg = re.sub(r'style="[^"]*"', lambda found: _themed(found.group(), mixed), svg)
    svg = svg.replace("xlink:href", "href")
    size = f'viewBox="0 0 {width} {int(figure["layout"]["height"])}"'
    label = f'class="still" role="img" aria-label="{html.escape(words or "A chart", quote=True)}"'
    return re.sub(r"<svg [^>]*>", lambda _: f'<svg {label} {size} xmlns="http://www.w3.org/2000/svg">', svg, count=1)


def png(figure: Figure, *, width: int = 960) -> bytes:
    """One figure as a PNG on white, in the light colours, twice as many pixels as `width`."""
    return _saved(figure, width, "png", dpi=144, facecolor="#ffffff")


def colours_css() -> str:
    """The palette as variables: light, and dark where the reader's system is dark."""
    light = " ".join(f"--c{color[1:]}: {color};" for color in palette.DARK)
    dark = " ".join(f"--c{color[1:]}: {partner};" for color, partner in palette.DARK.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"


def plain(text: Any) -> str:
    """The words that plotly would show: its few tags and entities undone."""
    return html.unescape(_MARKUP.sub("", str(text)))


def _variable(color: str) -> str:
    return f"var(--c{color[1:]}, {color})" if color in palette.DARK else color


def _themed(style: str, mixed: dict[str, str]) -> str:
    """An SVG's style with our colours as variables, and its words in the page's own font."""
    style = re.sub(r"font-family: [^;\"]*", "font-family: inherit", style)
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: mixed.get(found.group()) or _variable(found.group()), style)


def _saved(figure: Figure, width: int, kind: str, **how: Any) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    traces, layout, out = figure["data"], figure["layout"], io.BytesIO()
    with _drawing, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the font lacks: the reader's browser has it
        # one point is one pixel; words stay words; a visitor's $ is no formula; equal figures are equal files
        settings = {"svg.fonttype": "none", "text.parse_math": False, "svg.hashsalt": "still", "font.size": 11}
        matplotlib.rcParams.update(settings)
        canvas = Canvas(figsize=(width / 72, layout["height"] / 72), dpi=72, layout="constrained")
        ax = canvas.subplots()
        ax.set_facecolor("none")
        ax.spines[:].set_visible(False)
        bars = [trace for trace in traces if trace["type"] == "bar"]
        for trace in traces:
            if trace["type"] == "scatter":
                _line(ax, trace)
            elif trace["type"] == "heatmap":
                _map(ax, trace)
            elif trace["type"] == "bar":
                _bars(ax, trace, bars.index(trace), len(bars), layout.get("bargap", 0.3))
        _rules(ax, layout.get("shapes", ()))
        _axis(ax.xaxis, layout.get("xaxis") or {}, traces)
        _axis(ax.yaxis, layout.get("yaxis") or {}, traces)
        for note in layout.get("annotations", ()):
            _note(ax, note)
        if layout.get("showlegend") and ax.get_legend_handles_labels()[0]:
            look = {"frameon": False, "fontsize": 11, "labelcolor": palette.MUTED, "handlelength": 2.2}
            canvas.legend(loc="outside upper right", ncols=len(traces), **look)
        canvas.savefig(out, format=kind, **{"transparent": kind == "svg", **how})
    return out.getvalue()


def _axis(axis: Any, spec: dict[str, Any], traces: list[dict[str, Any]]) -> None:
    """Scale, ends, ticks, grid and title, as plotly would take them from `spec`."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

    letter, log, form = axis.axis_name, spec.get("type") == "log", str(spec.get("tickformat", ""))
    if log:
        axis._set_axes_scale("log")
        subs = (1,) if spec.get("dtick") == 1 else (1, 2, 5)
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_minor_locator(LogLocator(subs=()))
    names = list(dict.fromkeys(v for t in traces for v in _texts(t.get(letter))))
    if "tickvals" in spec:
        texts = spec.get("ticktext")
        axis.set_ticks(spec["tickvals"], [plain(text) for text in (spec["tickvals"] if texts is None else texts)])
    elif names:
        axis.set_ticks(range(len(names)), [plain(name) for name in names])
    else:
        if not log:
            axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        share = form.endswith("%")
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %" if share else f"{v:,.6g}"))
    if "range" in spec:
        ends = [10**end for end in spec["range"]] if log else spec["range"]
        axis.axes.set(**{f"{letter}lim": ends})
    elif spec.get("autorange") == "reversed":
        axis.set_inverted(True)
    shown = spec.get("showticklabels", True)
    axis.set_tick_params(length=0, pad=6, labelsize=11, labelcolor=palette.MUTED, labelleft=shown, labelbottom=shown)
    if spec.get("showgrid", True):
        axis.grid(color=palette.GRID, linewidth=1)
    axis.axes.set_axisbelow(True)
    axis.set_label_text(plain((spec.get("title") or {}).get("text", "")), color=palette.MUTED, fontsize=12)


def _texts(values: Any) -> list[str]:
    return [v for v in values if isinstance(v, str)] if isinstance(values, (list, tuple)) else []


def _places(trace: dict[str, Any], letter: str) -> np.ndarray:
    """Where the trace's points are along an axis; names are numbered in order."""
    values = trace[letter]
    return np.arange(len(values)) if _texts(values) else np.asarray(numbers_of(values), float)


def _line(ax: Any, trace: dict[str, Any]) -> None:
    line, marker, mode = trace.get("line") or {}, trace.get("marker") or {}, trace.get("mode", "lines")
    ink = line.get("color") or marker.get("color") or palette.DENSE
    (drawn,) = ax.plot(
        _places(trace, "x"), _places(trace, "y"), color=ink, alpha=trace.get("opacity"),
        linewidth=line.get("width", 2) if "lines" in mode else 0, label=plain(trace.get("name", "")),
        marker="o" if "markers" in mode else "", markersize=marker.get("size", 5), markeredgewidth=0,
    )  # fmt: skip
    if line.get("dash") in _DASHES:
        drawn.set_dashes(_DASHES[line["dash"]])


def _bars(ax: Any, trace: dict[str, Any], index: int, count: int, gap: float) -> None:
    lying, marker = trace.get("orientation") == "h", trace.get("marker") or {}
    lengths, places = _places(trace, "x" if lying else "y"), _places(trace, "y" if lying else "x")
    width = (1 - gap) / count
    places = places - (1 - gap) / 2 + (index + 0.5) * width
    draw = ax.barh if lying else ax.bar
    look = {"color": marker.get("color", palette.DENSE), "label": plain(trace.get("name", ""))}
    draw(places, lengths, 0.94 * width, **look)
    for length, place, text in zip(lengths, places, trace.get("text", ()) if lying else ()):
        _words(ax, plain(text), (length, place), (5, 0), ha="left", va="center")


def _map(ax: Any, trace: dict[str, Any]) -> None:
    from matplotlib.colors import ListedColormap

    z = np.asarray(numbers_of(trace["z"]), float)
    ends = {"vmin": trace.get("zmin", np.nanmin(z)), "vmax": trace.get("zmax", np.nanmax(z))}
    x, y = (_edges(_places(trace, n) if n in trace else np.arange(z.shape[n == "x"])) for n in "xy")
    shade = ListedColormap(list(_mixtures(trace)))
    ax.pcolormesh(x, y, np.ma.masked_invalid(z), cmap=shade, edgecolors="none", **ends)
    for edge in y[1:-1]:
        ax.axhline(edge, color=palette.PAPER, linewidth=trace.get("ygap", 0))


def _edges(middles: np.ndarray) -> np.ndarray:
    """Where cells begin and end, half-way between neighbours."""
    between = (middles[:-1] + middles[1:]) / 2
    ends = (0.5, 0.5) if len(middles) < 2 else (between[0] - middles[0], middles[-1] - between[-1])
    return np.concatenate([[middles[0] - ends[0]], between, [middles[-1] + ends[1]]])


def _mixtures(trace: dict[str, Any]) -> dict[str, str]:
    """The colours of a map, from low to high: as a number, and as CSS that mixes the palette's own in either theme."""
    if trace["type"] != "heatmap":
        return {}
    scale, found = trace["colorscale"], {}
    at = [position for position, _ in scale]
    rgb = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for _, color in scale], float)
    for share in np.linspace(0, 1, _STEPS * (len(scale) - 1) + 1):
        i = max(1, int(np.searchsorted(at, share)))
        part = (share - at[i - 1]) / (at[i] - at[i - 1])
        light = "#" + "".join(f"{round(c):02x}" for c in rgb[i - 1] + part * (rgb[i] - rgb[i - 1]))
        one, two = _variable(scale[i - 1][1]), _variable(scale[i][1])
        found[light] = f"color-mix(in srgb, {two} {100 * part:.0f}%, {one})"
    return found


def _rules(ax: Any, shapes: Any) -> None:
    for shape in shapes:
        if shape["type"] == "line":
            line = shape["line"]
            look = {"color": line["color"], "linewidth": line["width"], "zorder": 1.5}
            across = shape.get("xref") == "paper"
            drawn = ax.axhline(shape["y0"], **look) if across else ax.axvline(shape["x0"], **look)
            if line.get("dash") in _DASHES:
                drawn.set_dashes(_DASHES[line["dash"]])


def _note(ax: Any, note: dict[str, Any]) -> None:
    place, coordinates = [], []
    for letter in "xy":
        paper, axis = note.get(f"{letter}ref") == "paper", getattr(ax, f"{letter}axis")
        value = note[letter]
        # plotly takes the places of notes (not of rules) on a log axis as exponents
        place.append(value if paper or axis.get_scale() != "log" else 10**value)
        coordinates.append("axes fraction" if paper else "data")
    down = {"bottom": 2, "top": -2}.get(note.get("yanchor"), 0)
    shift = (note.get("xshift", 0), note.get("yshift", 0) + down)
    upright = note.get("yanchor") if note.get("yanchor") in ("top", "bottom") else "center"
    anchors = {"ha": note.get("xanchor", "center"), "va": upright}
    _words(ax, plain(note["text"]), place, shift, note["font"]["color"], tuple(coordinates), **anchors)


def _words(
    ax: Any, text: str, place: Any, shift: Any, color: str = palette.MUTED, xycoords: Any = "data", **anchors: str
) -> None:
    where = {"xycoords": xycoords, "textcoords": "offset points", "annotation_clip": False}
    ax.annotate(text, place, shift, color=color, fontsize=11, **where, **anchors)
