"""A student of a class: joining, the strip above the tabs, the class's run, leaving."""

from __future__ import annotations

import html
from typing import Any

from ...lessons.reading import Lesson
from ...service.classes import ClassError, Classes, Member
from ...service.limits import STUDENT_NAME
from .. import theme
from ..forms import run as form
from ..page import Page
from ..panel import Asked, Shown, Slot, deed_button
from ..tabs.train.settings import Settings
from . import picture
from .selection import Selection

JOIN = f"""<fieldset data-if="view:start view:join view:invited" class="stack" id="class-joining">
{theme.heading("Join a class")}
<label data-if="view:start view:join">Code <input type="text" data-field="code" maxlength="80" autocomplete="off"
placeholder="four words"></label>
<label>Your name <input type="text" data-field="name" dir="auto" maxlength="{STUDENT_NAME}" autocomplete="off"></label>
{theme.quiet("Your teacher sees this name, your losses, your answers and what your model writes.")}
<button type="button" class="primary" data-do="join_class" id="class-join">Join</button></fieldset>"""
_SURE = "Leave the class? Your name, your runs and your answers are deleted from it."


class Students:
    """What students press and see. Nothing about a student is kept here."""

    def __init__(self, page: Page, classes: Classes, settings: Settings):
        self.page, self.classes, self.settings = page, classes, settings
        acts = {"join_class": self.join, "set_class_run": self.set_controls, "leave_class": self.leave}
        for name, act in acts.items():
            page.panels.act(name, act)

    # ---- what they press ---------------------------------------------------------------------------------------------

    def join(self, asked: Asked) -> dict[str, Any]:
        """Handle a press of Join: the lesson opens, or the controls are set."""
        given, origin = asked.selection, self.page.reach.origin_of(asked.request)
        member = self.classes.join(given.get("code"), given.get("name"), asked.visitor, origin)
        move = {"move": {"code": member.klass.code, "note": ""}}
        return move | ({"lesson": member.klass.lesson} if member.klass.lesson else self._fills(member))

    def set_controls(self, asked: Asked) -> dict[str, Any]:
        """Handle a press of Set the controls: set the class's run again."""
        member = self.classes.member(asked.visitor)
        if member is None:
            raise ClassError("Your class no longer exists.")
        return self._fills(member)

    def leave(self, asked: Asked) -> dict[str, Any]:
        """Leave the class: the visitor has pressed the button and confirmed."""
        member = self.classes.member(asked.visitor)
        if member is not None:
            self.classes.withdraw(member)
        return {"move": {"code": "", "note": "left"}}

    def _fills(self, member: Member) -> dict[str, Any]:
        """The values for the Train tab's form; none if the class has no run."""
        spec = member.klass.spec(member.number)
        if spec is None:
            return {}
        return {"fills": self.settings.held(form.values_of(spec)), "tab": "train"}

    def lesson_of(self, visitor: str, lesson: Lesson | None) -> Lesson | None:
        """A lesson for this visitor: in a class it trains the class's run, so that both are one task."""
        member = self.classes.member(visitor) if lesson is not None else None
        if member is None or member.klass.ended or member.klass.lesson != lesson.id:
            return lesson
        spec = member.klass.spec(member.number)
        if spec is None:
            return lesson
        training = spec.training
        own = {"train.steps": training.steps, "train.seed": training.seed, "train.patience": 0}
        steps = [
            step.model_copy(update={"sets": step.sets | own}) if step.doing == "run" else step for step in lesson.steps
        ]
        return lesson.model_copy(update={"steps": steps})

    # ---- what they see -----------------------------------------------------------------------------------------------

    def show(self, member: Member, chosen: Selection) -> Shown:
        """The view of a student's strip."""
        klass = member.klass
        run = self.classes.latest_of(member)
        known = (klass.id, klass.ended, klass.title, member.name, run and (run.report.step, run.report.loss))
        place = {"code": klass.code, "joined": True}
        slots = {
            "place": Slot(place, lambda: place),
            "strip": Slot(known, lambda: picture.strip_html(member, run)),
            "strip-buttons": Slot(known, lambda: _buttons(member)),
        }
        return Shown(chosen.moved(view="student", code=klass.code, note="").to_dict(), slots)


def _buttons(member: Member) -> str:
    klass, parts = member.klass, []
    if klass.lesson and not klass.ended:
        lesson = html.escape(klass.lesson, quote=True)
        parts.append(
            f'<a class="ghost" href="?class={klass.code}&amp;lesson={lesson}" data-open-lesson="{lesson}">'
            "Open the lesson</a>"
        )
    if klass.letters and not klass.ended:
        parts.append(deed_button("Set the controls", "set_class_run", id="class-set"))
    parts.append(deed_button("Leave the class", "leave_class", kind="link", data_sure=_SURE, id="class-leave"))
    return "".join(parts)
