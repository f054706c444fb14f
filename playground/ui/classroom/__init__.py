"""A class on the page: one panel above the tabs, which is the teacher's board or a student's strip.

selection.py  what the browser keeps of it
make.py       what a teacher fills in
student.py    joining, the strip, the class's run, leaving
board.py      the board: live, with names shown or hidden, as CSV; ending and deleting
picture.py    the contents of the strip and the board
answers.py    what a class learns of a student's lesson, and how often each answer was given

A page without a class asks the server nothing: front/class.js opens the panel only where the address names a class,
this browser has joined one, or somebody chooses it in the menu. The teacher's secret comes after the address's #,
which browsers do not send. It then moves to the tab's own memory, so that a projector does not show it.
"""

from __future__ import annotations

from functools import partial

from ...kept import Latest
from ...service.classes import ClassError, Classes, StoreError
from ...service.limits import PAGES
from ...words.classroom import GONE
from .. import theme
from ..chart import chart_place
from ..page import Page
from ..panel import Asked, Shown, Slot, slot
from ..tabs.train.settings import SET_BY_RUN
from . import make, student
from .answers import tell
from .board import Board
from .selection import Selection
from .student import Students

LOOK_SECONDS, STUDENT_SECONDS = 3.0, 10.0
"""Seconds between two checks by a board, and by a strip."""
_CHANGED = theme.heading("What one change does", "A dot for each complete run; the mean of several with its interval.")
TEMPLATE = f"""{slot("place", data_own="", hidden="")}
{slot("problem", tag="p", class_="notice notice-error", role="alert")}
<div class="card class-forms" data-if="view:start view:join view:invited view:note">
<div class="line"><div class="grow">{slot("note")}</div>
<button type="button" class="link class-close">Close</button></div>
<div class="two">{student.JOIN}{make.MAKE}</div></div>
<div class="card quiet" data-if="view:student">{slot("strip")}{slot("strip-buttons", class_="line tight")}</div>
<section data-if="view:board view:results">
<div class="card">{slot("head")}{slot("board-buttons", class_="line tight")}</div>
<div class="card"><label class="check"><input type="checkbox" name="masked" id="class-masked">Hide the names</label>
{slot("table", id="class-table")}</div>
<div class="two">
<div class="card">{theme.heading("Latest runs", "Each student's last run. The median is dotted.")}
<div id="class-curves">{chart_place("curves", height=340, save_name="class-curves")}</div></div>
<div class="card">{_CHANGED}
<div id="class-spread">{chart_place("spread", height=340, save_name="class-spread")}</div></div></div>
<div class="card" data-if="answered">{theme.heading("Answers")}{slot("answers", id="class-answers")}</div>
<p class="quiet"><a href="?">Back to the playground</a></p></section>"""


def build(page: Page, classes: Classes) -> None:
    """Add the panel to the layout, and wire it up."""
    page.board.told = classes.heard
    page.share("class.told", partial(tell, classes))
    page.share("class.forget", classes.forget)
    settings = page.shared("train.running").settings
    students = Students(page, classes, settings)
    page.share("class.lesson", students.lesson_of)
    room = Room(page, classes, Board(page, classes), students)
    panel = page.panels.add(
        "class", room.show, TEMPLATE, start=Selection().to_dict(), follows=True, elem_id="class-panel"
    )
    settings.followed.filled_by(panel, SET_BY_RUN)
    page.share("class.news", room.news)


class Room:
    """What the panel shows, and whether there is anything new. Nothing about a class is kept here."""

    def __init__(self, page: Page, classes: Classes, board: Board, students: Students):
        self.page, self.classes, self.board, self.students = page, classes, board, students
        self._open = Latest(PAGES)  # a visitor and the class of a board; 0: a strip
        page.panels.act("make_class", lambda asked: make.make(page, classes, asked))

    def show(self, asked: Asked) -> Shown:
        """The view: a teacher's, a student's, or that of a visitor in no class."""
        chosen, member = Selection.read(asked.selection), self.classes.member(asked.visitor)
        if chosen.secret:
            try:
                klass = self.classes.taught(chosen.code, chosen.secret, self.page.reach.origin_of(asked.request))
            except ClassError as problem:
                return _forms(chosen, "note", theme.notice(str(problem)))
            self._opened(asked.visitor, klass.id)
            return self.board.show(klass, chosen, asked)
        if member is not None and chosen.code in ("", member.klass.code):
            self._opened(asked.visitor, 0)
            return self.students.show(member, chosen)
        note = "gone" if chosen.view == "student" and not chosen.note else chosen.note
        if note in GONE:
            return _forms(chosen.moved(note=note), "note", theme.notice(GONE[note]))
        if not chosen.code:
            return _forms(chosen, "start")
        try:
            klass = self.classes.invited(chosen.code, self.page.reach.origin_of(asked.request))
        except ClassError as problem:
            return _forms(chosen, "join", theme.notice(str(problem), "error"))
        words = theme.notice(f"You are invited to “{klass.title}”. Choose a name.", "good")
        return _forms(chosen, "invited", words, code=klass.code)

    def news(self, visitor: str) -> tuple[object, float | None]:
        """A value that changes with the classes this visitor has open, and the seconds until the next look, if any."""
        told, pauses = [], []
        for class_id in self._of(visitor):
            try:
                member = None if class_id else self.classes.member(visitor)
                klass = self.classes.of_id(class_id) if class_id else member and member.klass
            except StoreError:
                return "busy", STUDENT_SECONDS
            told.append(klass and (klass.id, klass.ended, class_id and self.board.state(klass)))
            pauses += [LOOK_SECONDS if class_id else STUDENT_SECONDS] if klass and not klass.ended else []
        return told, min(pauses, default=None)

    def _opened(self, visitor: str, class_id: int) -> None:
        self._open[visitor, class_id] = None

    def _of(self, visitor: str) -> list[int]:
        return [class_id for who, class_id in list(self._open) if who == visitor]


def _forms(chosen: Selection, view: str, note: str = "", *, code: str = "") -> Shown:
    """The view of a visitor in no class."""
    place = {"code": code}
    slots = {"place": Slot(place, lambda: place), "note": Slot(note, lambda: note)}
    if chosen.view in ("student", "board", "results"):  # no trace of the class stays in the page
        slots |= dict.fromkeys(("strip", "head", "table", "answers"), Slot("", lambda: ""))
        slots |= dict.fromkeys(("curves", "spread"), Slot("", lambda: None))
    return Shown(chosen.moved(view=view, code=code, secret="").to_dict(), slots)
