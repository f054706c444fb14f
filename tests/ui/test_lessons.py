"""The lessons on the page: what their files name is there, and every word of theirs holds for what a visitor has."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from playground.lessons.progress import Progress
from playground.lessons.reading import Lesson, all_lessons
from playground.lessons.vocabulary import PLACES, SETS, WATCHED
from playground.ui.app import build_app

from .runs import ANNA


@pytest.fixture(scope="module")
def app():
    return build_app()


@pytest.fixture(scope="module")
def page(app):
    return app.page


class Visitor:
    """Somebody who presses things in the strip; what a handler answers is what the page then holds."""

    def __init__(self, page, name: str = ANNA):
        self.page, self.strip = page, page.shared("lessons.strip")
        strip = self.strip
        held = [strip.progress, page.visitor, page.model, strip.subject, strip.looked_at, *strip.controls.values()]
        self.values: dict[Any, Any] = {component: getattr(component, "value", None) for component in held}
        self.values[page.visitor] = name
        self.shown: dict = {}

    def does(self, do: str, query: dict | None = None, **more: Any) -> dict:
        """One press; returns what the strip shows."""
        request = SimpleNamespace(query_params=query or {}, session_hash="s")
        answer = self.strip.act(dict(self.values), gr.EventData(None, {"do": do, **more}), request)
        for component, update in answer.items():
            value = update.get("value") if isinstance(update, dict) and "__type__" in update else update
            value = getattr(update, "value", value)
            if component in self.values and value is not None:
                self.values[component] = value
        self.shown = answer[self.strip.strip]
        return self.shown

    @property
    def progress(self) -> Progress:
        return Progress.from_dict(self.values[self.strip.progress])


def guess_of(step) -> Any:
    return next(iter(step.ask.choices)) if step.ask.kind == "choice" else step.ask.least


def test_every_place_and_control_is_on_the_page(app, page):
    ids = {block.elem_id for block in app.blocks.values()}
    for name, place in PLACES.items():
        for selector in filter(None, (place.selector, place.fold and f"#{place.fold}")):
            found = re.match(r"#([\w-]+)", selector)
            assert found and found[1] in ids, name
    controls = page.shared("lessons.strip").controls
    for name in {*SETS, *WATCHED} - {"tab", "view", "model"}:
        assert name in controls or name.startswith("train."), name


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.id)
def test_every_lesson_sets_what_there_is_and_can_be_walked(page, lesson: Lesson):
    """Without training: what needs a run of one's own says so, and everything else is said with numbers."""
    visitor = Visitor(page)
    visitor.does("open", lesson=lesson.id)
    for i, step in enumerate(lesson.steps):
        shown = visitor.does("go", step=i)
        assert shown["step"] == step.id and step.title.split()[0] in shown["html"]
        if step.ask is not None:
            visitor.does("guess", guess=guess_of(step))
        if step.done:
            visitor.does("did", step=step.id)
        assert "{" not in visitor.shown["html"]
    done = visitor.progress.ticked(lesson)
    assert sum(done) >= sum(not s.done.keys() & {"run", "balance", "when", "control"} for s in lesson.steps)
