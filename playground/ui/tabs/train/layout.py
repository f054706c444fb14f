"""The Train tab's layout: the controls on the left, what a run looks like on the right."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....service.limits import Limits
from ....service.pace import Pace
from ....service.views import RunView
from ....words.presets import NOTES, TITLES
from ... import theme
from ...chart import Chart, show
from ...forms import run as form
from ...forms import texts
from ...forms.fields import draw
from ...gradio_fixes.lenient import LenientCheckboxGroup
from ...quoted import quoted
from ...theme import quiet
from . import speaking, watch
from .runs_table import kept_words, runs_table
from .settings import FIRST_SOURCE, changes_text, outlook_text


def controls(limits: Limits, opening: RunView | None) -> dict[str, Any]:
    """The left column. Returns its components by name; those of `form.FIELDS` by the fields' names."""
    c: dict[str, Any] = {}
    c["letters"] = gr.Textbox("", visible=False)  # of the link that set the form up
    c["linked"] = gr.HTML(padding=False, visible=False, elem_id="linked")
    c["forget"] = gr.Button("Forget the link", size="sm", visible=False, elem_id="forget-link")
    c |= texts.draw(limits, "What should it learn?", FIRST_SOURCE)
    c["size"] = gr.Radio(
        [(title, name) for name, title in form.SIZES.items()],
        value=form.FIRST_SIZE,
        label="Size",
        elem_classes="pills",
        elem_id="size",
    )
    values = form.size_values(form.FIRST_SIZE, FIRST_SOURCE)
    first = values | {"source": FIRST_SOURCE, "prompt": texts.PROMPTS[FIRST_SOURCE]}
    c["outlook"] = gr.HTML(outlook_text(first, limits, Pace()), padding=False, elem_id="outlook")
    c["prompt"] = gr.Textbox(
        label="Prompt",
        info="What it continues while it learns. Press Enter to ask the model shown what comes next.",
        value=texts.PROMPTS[FIRST_SOURCE],
        max_lines=3,
        elem_id="prompt",
    )
    c["train"] = gr.Button("Train", variant="primary", size="lg", elem_id="train-button")
    with gr.Row(elem_id="train-buttons"):
        c["stop"] = gr.Button("Stop", variant="stop", size="md", interactive=False, min_width=90, elem_id="stop-button")
        c["resume"] = gr.Button("Resume", size="md", interactive=False, min_width=90, elem_id="resume-button")
    c["why"] = gr.HTML(quiet(watch.why_asleep(opening)), padding=False, elem_id="why")
    with gr.Accordion("Advanced", open=False, elem_id="advanced"):
        c["changes"] = gr.HTML(changes_text([], form.FIRST_SIZE), padding=False)
        c["reset"] = gr.Button("Reset all", size="sm")
        for group, title in form.GROUPS.items():
            with gr.Accordion(title, open=False, elem_classes="settings"):
                c |= draw((field for field in form.FIELDS if field.group == group), limits, values)
                c[f"reset_{group}"] = gr.Button(f"Reset “{title}”", size="sm")
    with gr.Accordion("Models of five walkthroughs (S1–S5) and two more", open=False, elem_id="systems"):
        gr.HTML(
            quiet(
                "Five walkthroughs of transformers come with code of their own; their models are called S1 to S5 here. "
                "A button sets the controls above to that model's architecture."
            )
            + '<ul class="changes quiet-line">'
            + "".join(f"<li><strong>{TITLES[n]}</strong> {NOTES[n]}</li>" for n in form.SYSTEMS)
            + "</ul>",
            padding=False,
        )
        with gr.Row(elem_classes="button-grid"):
            for name in form.SYSTEMS:
                c[f"preset_{name}"] = gr.Button(TITLES[name], size="sm", min_width=120, elem_id=f"preset-{name}")
        c["preset_note"] = gr.HTML(padding=False)
        c["preset_chart"] = Chart(height=240, save_name="preset-parameters", toolbar=False, visible=False)
        c["preset_table"] = gr.HTML(padding=False)
    # which settings "Reset" goes back to: a size or a preset. Not a gr.State, which would hold a connection open.
    c["base"] = gr.Textbox(form.FIRST_SIZE, visible=False)
    c["suited"] = gr.Textbox("", visible=False)  # for which length of an own text the settings were chosen
    return c


def results(opening: RunView | None, limits: Limits, *, lasting: bool) -> dict[str, Any]:
    """The right column, showing a recorded run before anything was trained."""
    r: dict[str, Any] = {}

    def drawn(picture: tuple, **more: Any) -> Any:
        return quoted(show(*picture), **watch.facts(opening), **more)

    with gr.Column(elem_classes="card"):
        r["status"] = gr.HTML(watch.status(opening), padding=False, elem_id="status")
        r["match"] = gr.HTML(padding=False, elem_id="match")
        r["curve"] = Chart(drawn(watch.curve(opening)), height=360, save_name="loss", elem_id="curve")
        r["rungs"] = gr.HTML(speaking.panel(opening), padding=False, elem_id="rungs")
        with gr.Row(elem_id="after-training"):
            r["best"] = gr.Button("Use the best step", size="md", visible=False, elem_id="use-best", min_width=150)
            r["talk"] = gr.Button("Talk to it →", size="md", visible=bool(opening), elem_id="talk", min_width=120)
            r["copy"] = gr.Button(
                "Copy link",
                size="md",
                visible=bool(opening),
                elem_id="copy-run",
                elem_classes="copy-link",
                min_width=100,
            )
        r["letters"] = gr.Textbox("", visible=False)  # of a link to the run that is shown
    with gr.Row(equal_height=False):
        with gr.Column(scale=6, min_width=300, elem_classes="card"):
            gr.HTML(
                theme.heading("What it writes", "The same prompt, continued along the way; the newest on top."),
                padding=False,
            )
            r["skill"] = Chart(
                show(*speaking.skill_chart(opening)), height=200, save_name="share-right", elem_id="skill"
            )
            r["samples"] = gr.HTML(watch.samples(opening), padding=False, elem_id="samples")
        with gr.Column(scale=5, min_width=300, elem_classes="card"):
            r["question"] = gr.HTML(watch.question(opening), padding=False)
            r["predictions"] = Chart(
                drawn(watch.predictions(opening), prompt=opening and opening.prompt),
                height=300,
                save_name="next-token",
                elem_id="predictions",
            )
    with gr.Accordion("Your runs, side by side", open=False, elem_classes="card", elem_id="runs"):
        r["runs"] = gr.HTML(runs_table([], None), padding=False)
        r["beside"] = LenientCheckboxGroup([], label="Draw beside the current run", visible=False, elem_id="beside")
        r["name"] = gr.Textbox(
            label="Name of the run that is shown", max_lines=1, max_length=60, interactive=False, elem_id="run-name"
        )
        with gr.Row(equal_height=False):
            r["rename"] = gr.Button("Rename", size="sm", interactive=False, min_width=90, scale=0, elem_id="rename")
            r["delete"] = gr.Button("Delete", size="sm", interactive=False, min_width=90, scale=0, elem_id="delete")
            r["take"] = gr.Button("Take it along", size="sm", min_width=110, scale=0, elem_id="take-along")
        r["sure"] = gr.Textbox("", visible=False, elem_id="sure")  # filled in by the question that Delete asks
        if lasting:
            gr.HTML(quiet(kept_words(limits, lasting=True)), padding=False)
        r["forget_me"] = gr.Button("Delete my data", size="sm", min_width=110, elem_id="forget-me")
    with gr.Accordion("Where the parameters are", open=False, elem_classes="card", elem_id="parameters"):
        config = opening.config if opening else None
        r["parameters"] = Chart(drawn(watch.parameter_chart(config)), height=240, save_name="parameters")
        r["parameter_table"] = gr.HTML(watch.parameter_table(config), padding=False)
    with gr.Accordion("Gradients, layer by layer", open=False, elem_classes="card", elem_id="gradients"):
        gr.HTML(quiet("How hard each part of the model is pushed by the loss, at each evaluation."), padding=False)
        r["gradients"] = Chart(drawn(watch.gradient_chart(opening)), height=280, save_name="gradients")
    with gr.Accordion("Words used alike", open=False, elem_classes="card", elem_id="similarity"):
        r["similarity_note"] = gr.HTML(watch.similarity_note(opening), padding=False)
        r["similarity"] = Chart(height=320, save_name="word-similarity")
    return r
