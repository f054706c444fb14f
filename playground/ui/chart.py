"""The chart component: one <div> that keeps its node, zoom, hover and legend while figures change and grow.

Build one, show figures in it, follow a growing run in it:

    from playground.ui.chart import Chart, Feed, head_html, show

    chart = Chart(show(loss_curve(run, rungs), describe_loss(run, rungs)), save_name="loss")

    def redraw(...):                      # any handler with the chart as an output
        return show(figure, "One sentence on what to look for.")

    async def follow(...):                # a handler that streams
        feed = Feed()                     # one per follower
        while True:
            yield feed.update(loss_curve(...), describe_loss(...))   # give the whole: only new points travel

    def clicked(event: gr.SelectData):    # chart.select(clicked, …)
        row, column = event.index         # a map's cell; for lines and bars (trace, point)
        event.value, event.trace, event.x, event.y

    routes = {"routes": [own_files.files_route()]}
    app.launch(head=head_html(), css=theme.css(), theme=theme.theme(), app_kwargs=routes)

`Feed.update` compares the figure with the one before: if x and y only got longer it sends the new points, if nothing
changed it sends nothing (`gr.skip()`), else the whole figure. The page notices a gap (a hidden tab, a missed
message) by the point counts and fetches the whole figure by itself. The zoom stays as long as the figure's
`layout.uirevision` does.
"""

from __future__ import annotations

import html as html_text
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import gradio as gr
import numpy as np
from gradio.context import LocalContext

from ..figures import palette
from ..figures.wire import numbers_of
from ..service.limits import FIGURES_PER_PAGE, PAGES
from .own_files import ASSETS, PLOTLY_JS, served_path

_TEMPLATE = """<figure class="chart-box" data-state="waiting" data-name="{name}">
<div class="chart-plot" role="img" aria-label="Chart" style="height: {height}px"></div>
<figcaption class="chart-foot"{foot}><p class="chart-words" aria-live="off"></p>{tools}</figcaption></figure>"""

_TOOLS = """<span class="chart-tools">
<button type="button" data-chart="reset" title="Show everything again" hidden>Reset zoom</button>
<button type="button" data-chart="png" title="Save this picture as PNG">PNG</button>
<button type="button" data-chart="svg" title="Save this picture as SVG">SVG</button>
<button type="button" data-chart="csv" title="Save the numbers of this picture as a table">CSV</button></span>"""

# 'select' is named for gr.HTML, which looks up the events of a component in this text.
_ON_LOAD = """const start = () => window.playgroundChart
  ? window.playgroundChart(element, props, trigger, server, watch) : setTimeout(start, 25); start(); /* 'select' */"""


def Chart(
    value: dict[str, Any] | None = None,
    *,
    height: int = 320,
    save_name: str = "chart",
    toolbar: bool = True,
    clickable: bool = False,
    elem_id: str | None = None,
    visible: bool = True,
    **html: Any,
) -> gr.HTML:
    """A gr.HTML that draws plotly figures (a function: gradio writes stub files beside subclasses).

    Args:
        value: what `show` or `Feed.update` returned, or a bare figure dictionary; None shows an empty place.
        height: pixels reserved before the first figure; a figure's own `layout.height` counts afterwards.
        save_name: file name (without ending) of saved pictures.
        toolbar: False leaves out the sentence and the buttons (save as PNG, SVG or CSV, reset), for sparklines; the
            sentence still reaches screen readers.
        clickable: shows a pointing hand; say so where `.select` has a listener.
        **html: further arguments of gr.HTML.

    Events: `.select` with gr.SelectData: `index` ([row, column] of a map, else [trace, point]), `value`, and beside
    them `trace`, `x`, `y`, `text`.
    """
    return gr.HTML(
        value,  # type: ignore[arg-type]
        html_template=_TEMPLATE.format(
            name=html_text.escape(save_name, quote=True),
            height=int(height),
            foot="" if toolbar else " hidden",
            tools=_TOOLS if toolbar else "",
        ),
        js_on_load=_ON_LOAD,
        apply_default_css=False,
        server_functions=[whole_figure],
        elem_id=elem_id,
        elem_classes=["chart", *(["chart-clickable"] if clickable else [])],
        visible=visible,
        **html,
    )


def chart_place(
    slot: str, *, height: int = 320, save_name: str = "chart", clickable: bool = False, toolbar: bool = True
) -> str:
    """The place of a chart in a panel's template; its slot takes what `show` returns."""
    place = _TEMPLATE.format(
        name=html_text.escape(save_name, quote=True),
        height=int(height),
        foot="" if toolbar else " hidden",
        tools=_TOOLS if toolbar else "",
    )
    return f'<div class="chart{" chart-clickable" if clickable else ""}" data-slot="{slot}">{place}</div>'


def show(
    figure: dict[str, Any] | None,
    summary: str = "",
    *,
    exact: Callable[[], dict[str, Any] | None] | None = None,
    **facts: Any,
) -> dict[str, Any] | None:
    """A value for a Chart: the figure with its text summary, drawn as a whole. None empties the chart.

    Args:
        exact: makes the figure again with exact numbers, where this one holds rounded ones, or None where it cannot be
            any more; asked by a visitor who saves them as a table. It should keep nothing large alive.
        **facts: what else than the tab says (`quoted`) tells this picture from others: its layer, its step.
    """
    if figure is None:
        return None
    value = {"figure": figure, "summary": summary}
    if exact is not None:
        value["exact"] = name = secrets.token_urlsafe(16)
        _remember(name, exact)
    return value | ({"facts": facts} if facts else {})


class Feed:
    """Sends a growing figure to one Chart: whole at first, then only what is new. One per follower.

    The last whole figure stays here under an unguessable name, for a page that has missed a part, until the same page
    has been shown FIGURES_PER_PAGE newer ones.
    """

    def __init__(self) -> None:
        self._stream = secrets.token_urlsafe(16)
        self._last: dict[str, Any] | None = None

    def update(self, figure: dict[str, Any], summary: str = "") -> Any:
        """The value to yield for this figure: the whole, the new points, or gr.skip() where nothing changed."""
        whole = {"figure": figure, "summary": summary, "stream": self._stream}
        last, self._last = self._last, whole
        _remember(self._stream, whole)
        added = _added_points(last["figure"], figure) if last else None
        if last is None or added is None:
            return whole
        if not added and summary == last["summary"]:
            return gr.skip()
        return {"append": added, "summary": summary, "stream": self._stream}


def whole_figure(stream: str) -> dict[str, Any] | None:
    """The last whole figure of a feed, asked for by a page that has missed a part; None where it is gone.

    Of a figure that was shown with `exact`: the exact one.
    """
    with _lock:
        page = next((page for page in _pages if isinstance(stream, str) and stream in _pages[page]), None)
        if page is None:
            return None
        _pages.move_to_end(page)
        _pages[page].move_to_end(stream)
        found = _pages[page][stream]
    if not callable(found):
        return found
    figure = found()
    return None if figure is None else {"figure": figure}


def head_html() -> str:
    """The tags for `launch(head=…)`: plotly.js from its package and our script and style, all served from here."""
    return (
        f'<link rel="stylesheet" href="{served_path(ASSETS / "chart.css")}">'
        f"<script>window.playgroundPalette = {json.dumps(palette.DARK)};</script>"
        f'<script src="{served_path(ASSETS / "chart.js")}"></script>'
        f'<script id="playground-plotly" src="{served_path(PLOTLY_JS)}" async></script>'
    )


_pages: OrderedDict[str, OrderedDict[str, dict[str, Any] | Callable[[], dict[str, Any] | None]]] = OrderedDict()
"""By the session of the page that was shown it and by its name: each page has room of its own."""
_lock = threading.Lock()


def _remember(stream: str, whole: Any) -> None:
    session = getattr(LocalContext.request.get(None), "session_hash", None) or ""
    with _lock:
        own = _pages.setdefault(session, OrderedDict())
        own[stream] = whole
        own.move_to_end(stream)
        _pages.move_to_end(session)
        while len(own) > FIGURES_PER_PAGE:
            own.popitem(last=False)
        while len(_pages) > PAGES:
            _pages.popitem(last=False)


def _added_points(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any] | None:
    """{trace index: {from, x, y}} where x and y only got longer; None where anything else changed."""
    if old.get("layout") != new.get("layout") or len(old["data"]) != len(new["data"]):
        return None
    added = {}
    for index, (before, after) in enumerate(zip(old["data"], new["data"])):
        if {k: v for k, v in before.items() if k not in "xy"} != {k: v for k, v in after.items() if k not in "xy"}:
            return None
        if before.get("x") == after.get("x") and before.get("y") == after.get("y"):
            continue
        points = {}
        for axis in "xy":
            first, then = numbers_of(before.get(axis)), numbers_of(after.get(axis))
            if first is None or then is None or first.ndim != 1 or len(then) < len(first):
                return None
            if not np.array_equal(first, then[: len(first)], equal_nan=True):
                return None
            points[axis] = [float(x) if np.isfinite(x) else None for x in then[len(first) :]]
            points["from"] = len(first)
        added[str(index)] = points
    return added
