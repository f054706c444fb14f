"""Making a class: what a teacher fills in, and where the page goes once it is made."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ...lessons.reading import all_lessons, find_lesson
from ...service.cards import settings_card
from ...service.classes import Classes, check_class_text
from ...service.limits import CLASS_TEXT, CLASS_TITLE
from ...service.runs import OWN_TEXT, RunSpec, Source
from .. import theme
from ..forms import run as form
from ..forms import texts
from ..page import QUIETLY, Page
from ..refusals import in_words

ENDS = (("in an hour", 1), ("in two hours", 2), ("in eight hours", 8), ("in two days", 48), ("in a week", 168),
        ("in a month", 744))  # fmt: skip
CHANGES = (("nothing", ""), ("the seed", "seed"), ("the size", "size"), ("the text", "text"))

NO_RUN = "none"

# a page of its own, at the teacher's link
_GO = """(code, secret) => {
  if (code && secret) location.assign(location.pathname + '?class=' + code + '#teach=' + secret);
}"""


def build(page: Page) -> dict[str, Any]:
    """The form. Returns its components by name."""
    m: dict[str, Any] = {}
    words = (
        "For whoever teaches: students join with a code, and you see on one board what they do. No account is needed."
    )
    gr.HTML(theme.heading("Make a class", words), padding=False)
    with gr.Row():
        m["title"] = gr.Textbox(label="Title", placeholder="Tuesday’s class", max_lines=1, max_length=CLASS_TITLE,
                                min_width=200, elem_id="class-title")  # fmt: skip
        m["hours"] = gr.Dropdown(list(ENDS), value=2, label="It ends", min_width=140, elem_id="class-ends")
        lessons = [("none", ""), *((f"{lesson.number}. {lesson.title}", lesson.id) for lesson in all_lessons())]
        m["lesson"] = gr.Dropdown(lessons, value="", label="Lesson", min_width=200, elem_id="class-lesson")
    with gr.Row():
        sources = [(title, name) for name, title in texts.SOURCES.items()]
        sources.append(("No run: the lesson alone", NO_RUN))
        m["source"] = gr.Dropdown(sources, value="stories", label="Text", min_width=150, elem_id="class-source")
        sizes = [(title, name) for name, title in form.SIZES.items()]
        m["size"] = gr.Dropdown(sizes, value="small", label="Size of the model", min_width=120, elem_id="class-size")
        m["steps"] = gr.Number(0, label="Steps (0: as many as suit)", precision=0, minimum=0, min_width=110,
                               elem_id="class-steps")  # fmt: skip
        m["seed"] = gr.Number(0, label="Seed", precision=0, minimum=0, min_width=90, elem_id="class-seed")
    m["text"] = gr.Textbox(
        label="The class's own text", lines=3, max_lines=6, visible=False, max_length=CLASS_TEXT, elem_id="class-text"
    )
    with gr.Row():
        m["changes"] = gr.Radio(
            list(CHANGES),
            value="seed",
            label="What each student changes",
            info="Then the class has made an experiment: how far runs lie apart that differ in this alone.",
            elem_classes="pills",
            min_width=260,
            elem_id="class-changes",
        )
        m["target"] = gr.Number(
            0,
            label="Speedrun: validation loss to reach (0: none)",
            info="Whoever comes to it with the least work leads. Every entry is trained again here before it counts.",
            minimum=0,
            min_width=200,
            elem_id="class-target",
        )
    m["make"] = gr.Button("Make the class", size="md", elem_id="class-make")
    return m


def connect(page: Page, classes: Classes, m: dict[str, Any], code: gr.Textbox, secret: gr.Textbox) -> None:
    """Bind it; `code` and `secret` take those of the class that was made."""

    def make(values: dict, request: gr.Request) -> dict:
        """Press Make the class."""
        with in_words():
            given = {name: values[component] for name, component in m.items() if component in values}
            spec = None if given["source"] == NO_RUN else preset(given, page)
            lesson = find_lesson(given["lesson"]) if given["lesson"] else None
            hours, target = given["hours"], given["target"]
            made, key = classes.make(
                given["title"],
                hours if form.is_number(hours) else 0,
                lesson=lesson.id if lesson else "",
                letters=settings_card(spec).to_letters() if spec else "",
                text=spec.source.text if spec else "",
                changes=given["changes"] if spec else "",
                target=float(target) if form.is_number(target) and target else None,
                address=page.reach.origin_of(request),
            )
        return {code: made.code, secret: key}

    inputs = {component for name, component in m.items() if name != "make"}
    m["source"].input(lambda source: gr.Textbox(visible=source == OWN_TEXT), m["source"], m["text"], **QUIETLY)
    m["make"].click(make, inputs, [code, secret], **QUIETLY).success(None, [code, secret], None, js=_GO)


def preset(given: dict[str, Any], page: Page) -> RunSpec:
    """The run that a class's controls are set to. Raises ValueError."""
    limits, source, size = page.limits, given["source"], given["size"]
    if source not in texts.SOURCES or size not in form.SIZES:
        raise ValueError("Choose a text and a size of the model.")
    own = source == OWN_TEXT
    text = given["text"] if own and isinstance(given["text"], str) else ""
    if own and not text.strip():
        raise ValueError("There is no text yet: paste one for the class, or choose a language.")
    check_class_text(text)
    limits.check_text(text)
    values = form.base_values(size, source, limits, texts.own_of(text, "char"))
    values |= {"source": source, "size": size, "patience": 0, "prompt": texts.PROMPTS[source] or text[:12]}
    steps = form.whole("Steps", given["steps"], 1, limits.steps) if given["steps"] else values["steps"]
    values |= {"steps": steps, "seed": form.whole("The seed", given["seed"] or 0, 0, 2**31)}
    values |= {"eval_every": max(steps // 20, 5), "sample_every": max(steps // 8, 1)}
    spec = form.run_spec(values, Source(source, text=text), limits)
    limits.check_training(spec.model, spec.training)
    return spec
