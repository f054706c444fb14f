"""A chart: one place that keeps its node, zoom, hover and legend while plotly figures change in it.

    chart_place("curve", save_name="loss")                        # in a panel's template
    Slot(facts, lambda: show(figure, "One sentence on it."))      # what its slot shows

The browser's half is assets/chart.js. The zoom stays as long as the figure's `layout.uirevision` does. A page with
charts is launched with `head_html()` in its head and `own_files.files_route()` among its routes.
"""

from __future__ import annotations

import json
from typing import Any

from ..figures import palette
from . import theme
from .own_files import ASSETS, PLOTLY_JS, served_path

_TOOLS = """<details class="chart-menu"><summary aria-label="Save this figure" title="Save this figure">⋯</summary>
<span><button type="button" data-chart="png">Picture (PNG)</button>
<button type="button" data-chart="svg">Picture (SVG)</button>
<button type="button" data-chart="csv">Numbers (CSV)</button></span></details>"""


def chart_place(
    slot: str,
    *,
    height: int = 320,
    save_name: str = "chart",
    clickable: bool = False,
    toolbar: bool = True,
    below: str = "",
) -> str:
    """The place for a chart in a panel's template; its slot takes what `show` returns. `below` is HTML under it."""
    foot, tools = ("", _TOOLS) if toolbar else (" hidden", "")
    return f"""<div class="chart{" chart-clickable" if clickable else ""}" data-slot="{slot}">
<figure class="chart-box" data-state="waiting" data-name="{save_name}">
<div class="chart-plot scroll-x" role="img" aria-label="Chart" style="height: {height}px"></div>{below}
<figcaption class="chart-foot"{foot}><p class="chart-words" aria-live="off"></p>{tools}</figcaption></figure></div>"""


def show(
    figure: dict[str, Any] | None, summary: str = "", *, aloud: bool = False, **facts: Any
) -> dict[str, Any] | None:
    """The value of a chart: a figure with its text summary. Without a figure, there is only its text, if any.

    `aloud`: only screen readers get the summary, because the page already says the same beside the chart.
    `facts`: facts beyond those of the tab (`quoted`) that distinguish this picture, such as its layer or step.
    """
    if figure is None:
        return {"problem": theme.notice(summary)} if summary else None
    return {"figure": figure, "summary": summary, "aloud": aloud, "facts": facts}


def head_html() -> str:
    """The tags for `launch(head=…)`: plotly.js from its package and our script and style, all served from here."""
    return (
        f'<link rel="stylesheet" href="{served_path(ASSETS / "chart.css")}">'
        f"<script>window.playgroundPalette = {json.dumps(palette.DARK)};</script>"
        f'<script src="{served_path(ASSETS / "tables.js")}"></script>'
        f'<script src="{served_path(ASSETS / "chart.js")}"></script>'
        f'<script id="playground-plotly" src="{served_path(PLOTLY_JS)}" async></script>'
    )
