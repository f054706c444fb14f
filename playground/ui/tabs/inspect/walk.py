"""Step by step: all heads as small pictures, and one step of the walk with its picture, formula, code and sentence."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr

from ....inspection import Look
from ....inspection.walk import STEPS, Step, step, step_names
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientRadio
from ...widgets.clicks import cell_of, index_of
from . import receipt, thumbnails
from .drawn import window, window_words
from .frame import Frame, Place
from .pictures import picture, reading
from .words import coloured

TITLE = "Step by step"
SHORT = {
    "embed": "tokens", "project": "Q K V", "split": "heads", "turn": "turn", "scores": "scores", "mask": "mask",
    "softmax": "softmax", "blend": "blend", "output": "project", "change": "change", "think": "think",
    "predict": "predict",
}  # fmt: skip
"""Each step in a word, for the row of steps."""
CLICKABLE = ("scores", "mask", "softmax")
"""Steps whose picture is token against token."""


def build(frame: Frame) -> None:
    """Small pictures on the left, the step on the right, the receipt of the cell below."""
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=300, elem_classes="card"):
            thumbnails.build(frame)
        with gr.Column(scale=3, min_width=340, elem_classes="card", elem_id="inspect-step-card"):
            steps = LenientRadio(  # another model's steps may be others
                [(f"{i + 1} {SHORT[name]}", name) for i, name in enumerate(STEPS)],
                value="embed",
                show_label=False,
                container=False,
                elem_classes="pills",
                elem_id="inspect-steps",
            )
            heading = gr.HTML(padding=False, elem_id="inspect-step")
            chart = Chart(height=360, save_name="step", clickable=True, elem_id="inspect-step-chart")
            how = gr.HTML(padding=False, elem_id="inspect-how")
            with gr.Row(elem_id="inspect-buttons"):
                back = gr.Button("← Back", size="md", min_width=90, elem_id="inspect-back")
                onward = gr.Button("Next →", variant="primary", size="md", min_width=90, elem_id="inspect-next")
    receipt.build(frame)

    def draw(look: Look, place: Place, name: str) -> dict[Any, Any]:
        names = step_names(look)
        name = name if name in STEPS else "embed"
        name = name if name in names else names[min(list(STEPS).index(name), len(names) - 1)]
        here, number = step(look, name, place.layer, place.head, place.query, place.key), names.index(name)
        figure, part = picture(here, look, place)
        return {
            steps: gr.Radio(choices=[(f"{i + 1} {SHORT[n]}", n) for i, n in enumerate(names)], value=name),
            heading: headline(here, number, len(names)),
            chart: show(figure, reading(look, name, place.layer) + (window_words(look, part) if part else "")),
            how: formula(here),
            back: gr.Button(interactive=number > 0),
            onward: gr.Button(interactive=number + 1 < len(names)),
        }

    frame.follow(draw, [steps, heading, chart, how, back, onward], extra=[steps])
    frame.redraws(steps.input, of=steps)

    def moved(by: int) -> Any:
        def alter(look: Look, place: Place, values: dict, event: gr.EventData) -> dict:
            names = step_names(look)
            at = names.index(values[steps]) if values[steps] in names else 0
            return {steps: names[min(max(at + by, 0), len(names) - 1)]}

        return alter

    frame.redraws(back.click, moved(-1))
    frame.redraws(onward.click, moved(1))

    frame.moves(chart.select, clicked_cell, extra=[steps])


def clicked_cell(look: Look, place: Place, event: gr.EventData, name: str) -> Place:
    """Where a click on a step's picture leads: a cell of a token map, the token of a bar, the head of a row."""
    part, d_model = window(look.length, place.query), look.config.d_model
    drawn = part.stop - part.start
    if name in CLICKABLE:
        row, column = cell_of(event, rows=drawn, columns=drawn)
        return place.at(query=part.start + row, key=part.start + column)
    if name == "embed":
        return place.at(query=part.start + cell_of(event, rows=drawn, columns=d_model)[0])
    if name == "change":
        return place.at(query=index_of(event, look.length))
    if name == "output":
        return place.at(head=cell_of(event, rows=look.config.n_heads, columns=look.config.d_head)[0])
    return place


def headline(here: Step, number: int, count: int) -> str:
    """Title and sentence of a step."""
    return (
        f'<div class="step"><p class="step-number">Step {number + 1} of {count}</p><h3>{html.escape(here.title)}</h3>'
        f"<p>{coloured(here.sentence)}</p></div>"
    )


def formula(here: Step) -> str:
    """The formula with the real shapes, and the line of PyTorch."""
    return (
        f'<div class="how"><p class="formula">{coloured(here.formula)}</p>'
        f'<pre class="code"><code>{html.escape(here.code)}</code></pre></div>'
    )
