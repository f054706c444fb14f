"""A chart: one place that keeps its node, zoom, hover and legend while plotly figures change in it.

    chart_place("curve", save_name="loss")                        # in a panel's template
    Slot(facts, lambda: show(figure, "One sentence on it."))      # what its slot shows

The browser's half is assets/chart.js. The zoom stays as long as the figure's `layout.uirevision` does. A page with
charts is launched with `head_html()` in its head and `own_files.files_route()` among its routes.
"""

from __future__ import annotations

import html as html_text
import json
from typing import Any

import gradio as gr

from ..figures import palette
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
  ? window.playgroundChart(element, props, trigger, watch) : setTimeout(start, 25); start(); /* 'select' */"""


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
        value: what `show` returned; None shows an empty place.
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


def show(figure: dict[str, Any] | None, summary: str = "", **facts: Any) -> dict[str, Any] | None:
    """What a chart shows: a figure with its text summary. None empties the chart.

    `facts`: what else than the tab says (`quoted`) tells this picture from others: its layer, its step.
    """
    if figure is None:
        return None
    return {"figure": figure, "summary": summary} | ({"facts": facts} if facts else {})


def head_html() -> str:
    """The tags for `launch(head=…)`: plotly.js from its package and our script and style, all served from here."""
    return (
        f'<link rel="stylesheet" href="{served_path(ASSETS / "chart.css")}">'
        f"<script>window.playgroundPalette = {json.dumps(palette.DARK)};</script>"
        f'<script src="{served_path(ASSETS / "chart.js")}"></script>'
        f'<script id="playground-plotly" src="{served_path(PLOTLY_JS)}" async></script>'
    )
