"""The chart component: one <div> that keeps its node, zoom, hover and legend while its figures change.

    {chart_place("curve", height=300, save_name="loss")}      # in a panel's template
    "curve": Slot(key, lambda: show(loss_curve(run, rungs), describe_loss(run, rungs)))

    routes = {"routes": [files_route()]}
    app.launch(head=head_html(), css=theme.css(), theme=theme.theme(), app_kwargs=routes)

The zoom stays as long as the figure's `layout.uirevision` does.
"""

from __future__ import annotations

import html as html_text
import json
from pathlib import Path
from typing import Any

import plotly
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from ..figures import palette

ASSETS, FRONT = Path(__file__).parent / "assets", Path(__file__).parent / "front"
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"

_TEMPLATE = """<figure class="chart-box" data-state="waiting" data-name="{name}">
<div class="chart-plot" role="img" aria-label="Chart" style="height: {height}px"></div>
<figcaption class="chart-foot"{foot}><p class="chart-words" aria-live="off"></p>{tools}</figcaption></figure>"""

_TOOLS = """<span class="chart-tools">
<button type="button" data-chart="reset" title="Show everything again" hidden>Reset zoom</button>
<details class="chart-menu"><summary aria-label="Save this figure" title="Save this figure">⋯</summary><span>
<button type="button" data-chart="png">Picture (PNG)</button>
<button type="button" data-chart="svg">Picture (SVG)</button>
<button type="button" data-chart="csv">Numbers (CSV)</button></span></details></span>"""


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
    """What a chart's slot holds: the figure with its text summary. None empties the chart.

    Args:
        **facts: what else than the tab says (`quoted`) tells this picture from others: its layer, its step.
    """
    if figure is None:
        return None
    return {"figure": figure, "summary": summary} | ({"facts": facts} if facts else {})


def head_html() -> str:
    """The tags for `launch(head=…)`: plotly.js from its package and our script and style, all served from here."""
    return (
        f'<link rel="stylesheet" href="{served_path(ASSETS / "chart.css")}">'
        f"<script>window.playgroundPalette = {json.dumps(palette.DARK)};</script>"
        f'<script src="{served_path(ASSETS / "tables.js")}"></script>'
        f'<script src="{served_path(ASSETS / "chart.js")}"></script>'
        f'<script id="playground-plotly" src="{served_path(PLOTLY_JS)}" async></script>'
    )


def served_path(path: Path) -> str:
    """Where the page finds this file of ours or of plotly's; it changes with the file, so that a browser keeps it.

    Gradio's own address of a file would tell every visitor where on this machine it lies.
    """
    name, stat = f"{path.parent.name}/{path.name}", path.stat()
    _files[name] = path
    return f"ours/{name}?v={stat.st_size:x}-{int(stat.st_mtime):x}"


def files_route() -> Route:
    """For the `routes` of gradio's `app_kwargs`: what `served_path` has named, and nothing else."""

    def answer(request: Request) -> Response:
        path = _files.get(request.path_params["name"])
        return Response("Not found", 404) if path is None else FileResponse(path)

    return Route("/ours/{name:path}", answer)


_files: dict[str, Path] = {}
