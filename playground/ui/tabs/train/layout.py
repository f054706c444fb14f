"""The Train tab's form: the text, the size, Train; all other settings are folded below."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....service.limits import Limits
from ....service.pace import Pace
from ...forms import run as form
from ...forms import texts
from ...forms.fields import draw
from .settings import FIRST_SOURCE, outlook_text
from .sweep import seeds_here


def controls(limits: Limits) -> dict[str, Any]:
    """Draw the form. Returns the components by name; those of `form.FIELDS` by the fields' names."""
    c: dict[str, Any] = {}
    c["letters"] = gr.Textbox("", visible=False)  # the link that set the form up
    c["linked"] = gr.HTML(padding=False, elem_id="linked")
    c |= texts.draw(limits, "Learn from", FIRST_SOURCE)
    c["problem"] = gr.HTML(padding=False, elem_id="train-problem")  # why Train could not begin
    c["size"] = gr.Radio(
        [(title, name) for name, title in form.SIZES.items()],
        value=form.FIRST_SIZE,
        label="Size",
        elem_classes="seg-radio",
        elem_id="size",
    )
    c["further"] = gr.Checkbox(
        False,
        label="Train the chosen model further",
        elem_id="further",
    )
    values = form.size_values(form.FIRST_SIZE, FIRST_SOURCE)
    first = values | {"source": FIRST_SOURCE, "prompt": texts.PROMPTS[FIRST_SOURCE]}
    c["outlook"] = gr.HTML(outlook_text(first, limits, Pace()), padding=False, elem_id="outlook")
    c["train"] = gr.Button("Train", variant="primary", size="lg", elem_id="train-button")
    return c


def advanced(limits: Limits) -> dict[str, Any]:
    """All other settings."""
    c: dict[str, Any] = {}
    values = form.size_values(form.FIRST_SIZE, FIRST_SOURCE)
    with gr.Column(elem_id="advanced-box"):
        with gr.Accordion("Advanced", open=False, elem_id="advanced", elem_classes="advanced"):
            c["changes"] = gr.HTML(padding=False)
            c["prompt"] = gr.Textbox(
                label="Prompt",
                info="Every sample starts with this text.",
                placeholder="the first words of your text",
                value=texts.PROMPTS[FIRST_SOURCE],
                max_lines=3,
                elem_id="prompt",
            )
            c["name"] = gr.Textbox(
                label="Name", placeholder="named after its text", max_lines=1, max_length=60, elem_id="name"
            )
            c["sweep"] = gr.Textbox(
                label="Try several values",
                info=f"Each with {seeds_here(limits)} seeds. Their models are not kept.",
                placeholder="Learning rate = 0.001, 0.01",
                max_lines=1,
                max_length=200,
                elem_id="sweep-values",
            )
            for group, title in form.GROUPS.items():
                with gr.Accordion(title, open=False, elem_classes="settings"):
                    c |= draw((field for field in form.FIELDS if field.group == group), limits, values)
        c["reset"] = gr.Button("Reset", size="sm", visible=False, elem_id="reset", elem_classes="not-in-lessons")
    # which size's settings "Reset" goes back to. Not a gr.State, which would hold a connection open.
    c["base"] = gr.Textbox(form.FIRST_SIZE, visible=False)
    c["tuned"] = gr.Textbox("", visible=False)  # the model for whose further training the settings were chosen
    c["suited"] = gr.Textbox("", visible=False)  # for which length of the visitor's own text the settings were chosen
    return c
