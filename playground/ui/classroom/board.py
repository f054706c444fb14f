"""The teacher's board: what every student does, live; only for those who have the teacher's link."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...service.classes import Classes, Klass
from ...service.classes.tables import answers_csv, results_csv
from ..made_files import held
from ..page import Page
from ..panel import Asked, Shown, Slot, button, deed_button
from ..where import asked_here
from . import answers, picture
from .selection import Selection

_END = "End the class now? Then no one can join, and no further run counts."
_DELETE = "Delete this class with all names, runs and answers, for good? Save them as CSV first."
_KEEP = "The only way back to this board. Anyone who has it is the teacher."


class Board:
    """The teacher's board and its buttons. Every call checks the teacher's secret again."""

    def __init__(self, page: Page, classes: Classes):
        self.page, self.classes = page, classes
        page.panels.act("end_class", self.end)
        page.panels.act("delete_class", self.delete)
        for name, table in (("results", results_csv), ("answers", answers_csv)):
            page.panels.act(f"class_{name}", partial(self.saved, name, table))

    def state(self, klass: Klass) -> tuple:
        """What the board depends on, including the minute, because it says how long something takes."""
        return klass.id, klass.version, klass.ended, int(self.classes.clock() // 60)

    def show(self, klass: Klass, chosen: Selection, asked: Asked) -> Shown:
        """The whole board; only its results once the class has ended."""
        students, now, state = self.classes.students(klass), self.classes.clock(), self.state(klass)
        hidden, local = chosen.masked, asked_here(asked.request)
        place, given = {"code": klass.code, "secret": chosen.secret}, self.classes.answers(klass)
        slots = {
            "place": Slot(place, lambda: place),
            "head": Slot((state, local), lambda: picture.head_html(klass, students, now, local and not klass.ended)),
            "board-buttons": Slot(klass.ended, lambda: _buttons(klass.ended)),
            "table": Slot((state, hidden), lambda: picture.table_html(klass, students, hidden, now)),
            "curves": Slot((state[:3], hidden), lambda: picture.curves(klass, students, hidden)),
            "spread": Slot((state[:3], hidden), lambda: picture.spread(klass, students, hidden)),
            "answers": Slot(state[:3], lambda: answers.answers_html(given, len(students))),
        }
        moved = chosen.moved(view="results" if klass.ended else "board", answered=bool(given), note="")
        return Shown(moved.to_dict(), slots)

    def saved(self, name: str, table: Callable[[Classes, Klass], str], asked: Asked) -> dict:
        """Handle a press of Results or Answers (CSV)."""
        return {"save": held(f"class-{name}.csv", table(self.classes, self._taught(asked)).encode())}

    def end(self, asked: Asked) -> None:
        """End the class now: the visitor has pressed the button and confirmed."""
        self.classes.end(self._taught(asked))

    def delete(self, asked: Asked) -> dict:
        """Delete the class: the visitor has pressed the button and confirmed."""
        self.classes.delete(self._taught(asked))
        return {"move": {"code": "", "secret": "", "note": "deleted"}}

    def _taught(self, asked: Asked) -> Klass:
        given = asked.selection
        return self.classes.taught(given.get("code"), given.get("secret"), self.page.reach.origin_of(asked.request))


def _buttons(ended: bool) -> str:
    """The teacher's buttons. A class that has ended has fewer."""
    parts = [] if ended else [button("Copy the students’ link", data_class_link="students", id="copy-class")]
    parts.append(button("Copy the teacher’s link", data_class_link="teacher", id="copy-teacher", title=_KEEP))
    parts.append(deed_button("Results (CSV)", "class_results", id="class-results"))
    parts.append(deed_button("Answers (CSV)", "class_answers", id="class-answers-csv"))
    if not ended:
        parts.append(deed_button("End it now", "end_class", data_sure=_END, id="class-end"))
    parts.append(deed_button("Delete the class", "delete_class", data_sure=_DELETE, id="class-delete"))
    return "".join(parts)
