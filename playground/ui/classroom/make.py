"""Making a class: what a teacher fills in, and the run to which everybody's controls are set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...lessons.reading import Lesson, all_lessons, find_lesson
from ...service.cards import settings_card
from ...service.classes import Classes
from ...service.limits import CLASS_TEXT, CLASS_TITLE
from ...service.runs import OWN_TEXT, RunSpec, Source
from .. import theme
from ..forms import run as form
from ..forms import texts
from ..lessons.strip import under
from ..page import Page
from ..panel import Asked, options_html

ENDS = {1: "in an hour", 2: "in two hours", 8: "in eight hours", 48: "in two days", 168: "in a week", 744: "in a month"}
CHANGES = {"seed": "the seed", "size": "the size", "text": "the text", "": "nothing"}
PLAIN = {"source", "size", "steps", "patience"}
"""Settings that a lesson's run may have so that the class's run can replace it."""


_LESSONS = {"": "none"} | {lesson.id: f"{lesson.number}. {lesson.title}" for lesson in all_lessons()}
MAKE = f"""<fieldset data-if="view:start" class="stack" id="class-making">
{theme.heading("Make a class", "Students join with a code. One board shows what they do.")}
<label>Title <input type="text" data-field="title" dir="auto" maxlength="{CLASS_TITLE}" placeholder="Tuesday’s class">
</label>
<div class="fields"><label>Ends <select data-field="hours">{options_html(ENDS, 2)}</select></label>
<label>Lesson <select name="lesson">{options_html(_LESSONS)}</select></label></div>
<div class="fields"><label data-if="lesson:">Text <select name="source">{options_html(texts.SOURCES)}</select></label>
<label data-if="lesson:">Model size
<select data-field="size">{options_html(form.SIZES, form.FIRST_SIZE)}</select></label>
<label>Training steps <input type="number" data-field="steps" min="1" placeholder="default"></label>
<label>Each student changes <select data-field="changes">{options_html(CHANGES, "seed")}</select></label></div>
<div data-if="lesson:"><label data-if="source:text">The class’s text
<textarea data-field="text" dir="auto" rows="4" maxlength="{CLASS_TEXT}"></textarea></label></div>
<button type="button" class="primary" data-do="make_class" id="class-make">Make the class</button></fieldset>"""


def make(page: Page, classes: Classes, asked: Asked) -> dict[str, Any]:
    """Handle a press of Make the class: create it from the form. Raises ValueError."""
    given = asked.selection
    lesson = find_lesson(given["lesson"]) if given.get("lesson") else None
    spec = preset(given, page, lesson)
    klass, secret = classes.make(
        given.get("title"),
        float(given["hours"]) if str(given.get("hours")) in map(str, ENDS) else 0,
        lesson=lesson.id if lesson else "",
        letters=settings_card(spec).to_letters() if spec else "",
        text=spec.source.text if spec else "",
        changes=str(given.get("changes") or "") if spec else "",
        address=page.reach.origin_of(asked.request),
    )
    return {"move": {"code": klass.code, "secret": secret, "note": ""}}


def preset(given: Mapping[str, Any], page: Page, lesson: Lesson | None = None) -> RunSpec | None:
    """The run to which a class's controls are set: its lesson's, if that has one, or the form's. Raises ValueError."""
    limits, asks = page.limits, run_asked(lesson) if lesson else given
    if not asks:
        return None
    source, size = str(asks.get("source") or "stories"), str(asks.get("size") or form.FIRST_SIZE)
    if source not in texts.SOURCES or size not in form.SIZES:
        raise ValueError("Choose a text and a size of the model.")
    text = str(given.get("text") or "") if source == OWN_TEXT else ""
    if source == OWN_TEXT and not text.strip():
        raise ValueError("There is no text yet. Paste one for the class, or choose a language.")
    if len(text) > CLASS_TEXT:
        raise ValueError(f"A class's text may have at most {CLASS_TEXT:,} characters: use a part of it.")
    limits.check_text(text)
    values = form.base_values(size, source, texts.own_of(text, "char"))
    values |= {"source": source, "size": size, "patience": 0, "prompt": texts.PROMPTS[source] or text[:12]}
    steps = given.get("steps") or asks.get("steps")
    steps = form.whole("Steps", steps, 1, limits.steps) if steps else values["steps"]
    spec = form.run_spec(form.with_steps(values, steps), Source(source, text=text), limits)
    limits.check_training(spec.model, spec.training)
    return spec


def run_asked(lesson: Lesson) -> dict[str, Any]:
    """The settings of a lesson's one plain run, which the class's run replaces; empty if it has none or other runs."""
    runs = [under("train", step.sets) for step in lesson.steps if step.doing == "run"]
    return runs[0] if len(runs) == 1 and runs[0].keys() <= PLAIN else {}
