"""The chart component: one <div> that keeps its node, zoom, hover and legend while figures change and grow.

Build one, show figures in it, follow a growing run in it:

    from playground.ui.chart import Chart, Feed, head_html, show

    chart = Chart(show(loss_curve(run, rungs), describe_loss(run, rungs)), save_name="loss")

    def redraw(...):                      # any handler with the chart as an output
        return show(figure, "One sentence on what to look for.")

    async def follow(...):                # a handler that streams
        feed = Feed()                     # one per follower
        while True:
            yield feed.update(loss_curve(...), describe_loss(...))   # the whole figure each time: only new points travel

    def clicked(event: gr.SelectData):    # chart.select(clicked, …)
        row, column = event.index         # a map's cell; for lines and bars (trace, point)
        event.value, event.trace, event.x, event.y

    app.launch(head=head_html(), css=theme.css(), theme=theme.theme())

`Feed.update` compares the figure with the one before: if x and y only got longer it sends the new points, if nothing
changed it sends nothing (`gr.skip()`), else the whole figure. The page notices a gap (a hidden tab, a missed
message) by the point counts and fetches the whole figure by itself. The zoom stays as long as the figure's
`layout.uirevision` does.
"""

from __future__ import annotations

from typing import Any

import gradio as gr


def Chart(
    value: dict[str, Any] | None = None,
    *,
    height: int = 320,
    save_name: str = "chart",
    toolbar: bool = True,
    elem_id: str | None = None,
    elem_classes: list[str] | str | None = None,
    visible: bool = True,
    **html: Any,
) -> gr.HTML:
    """A gr.HTML that draws plotly figures.

    Args:
        value: what `show` or `Feed.update` returned, or a bare figure dictionary; None shows an empty place.
        height: pixels reserved before the first figure; a figure's own `layout.height` counts afterwards.
        save_name: file name (without ending) of saved pictures.
        toolbar: False leaves out the buttons (save as PNG, save as SVG, reset), for sparklines.
        **html: further arguments of gr.HTML.

    Events: `.select` with gr.SelectData: `index` ([row, column], or [trace, point]), `value`, `trace`, `x`, `y`, `text`.
    """
    raise NotImplementedError


def show(figure: dict[str, Any] | None, summary: str = "") -> dict[str, Any] | None:
    """A value for a Chart: the figure with its text summary, drawn as a whole. None empties the chart."""
    raise NotImplementedError


class Feed:
    """Sends a growing figure to one Chart: whole at first, then only what is new. One per follower."""

    def update(self, figure: dict[str, Any], summary: str = "") -> Any:
        """The value to yield for this figure: the whole, the new points, or gr.skip() where nothing changed."""
        raise NotImplementedError


def head_html() -> str:
    """The tags for `launch(head=…)`: plotly.js from its package and our script, both served from here."""
    raise NotImplementedError
