"""A class on the page: a fold under the masthead to join or make one, a student's strip, and the teacher's board.

make.py     what a teacher fills in
student.py  joining, the strip, the speedrun, leaving
board.py    the board: live, sorted, names hidden or not, as CSV, deleted
where.py    from which address a request comes
picture.py  what the board draws and says, out of what the class knows

A page without a class asks the server nothing: the browser presses the hidden button `class-open` only where the
address names a class or this browser has joined one. The teacher's secret stands behind the address's #, which
browsers do not send; then in the tab's own memory, so that a projector does not show it.
"""

from __future__ import annotations

import contextlib
from typing import Any

import gradio as gr

from ...lessons.progress import Progress
from ...lessons.reading import Ask, Lesson
from ...service.classes import ClassError, Classes, StoreError
from ...service.classes.speedrun import Verifier
from ..page import QUIETLY, Page
from ..refusals import in_words
from . import board, make, student

OPEN = """() => {
  let known = false;
  try { known = localStorage.getItem('playground-class') === 'joined'; } catch {}
  if (known || new URLSearchParams(location.search).has('class')) document.querySelector('#class-open')?.click();
}"""
"""For the page's load: asks the server only where there is a class to ask about."""

# the code and the secret out of the address, which from then on shows the code alone
_FROM_ADDRESS = """(visitor) => {
  const code = new URLSearchParams(location.search).get('class') || '', name = 'playground-teaches ' + code;
  let secret = (location.hash.match(/^#teach=([\\w-]+)$/) || [])[1] || '';
  try {
    if (secret) {
      sessionStorage.setItem(name, secret);
      history.replaceState(null, '', location.pathname + location.search);
    } else secret = sessionStorage.getItem(name) || '';
  } catch {}
  window.addEventListener('hashchange', () => { if (location.hash.startsWith('#teach=')) location.reload(); });
  return [visitor, code, secret];
}"""


def build(page: Page, classes: Classes) -> None:
    """Lay it out where it is called, and wire it up."""
    verifier = Verifier(classes, page.board)
    page.board.told = classes.heard
    page.share("class.told", Told(classes))
    page.share("class.forget", classes.forget)
    door = gr.Button("Open the class", elem_id="class-open")
    # of the class whose board is open; not a gr.State, which would hold a connection open
    code, secret = gr.Textbox("", visible=False), gr.Textbox("", visible=False)
    strip = student.strip()
    title = "A class: join one, or make one"
    with gr.Accordion(title, open=False, elem_id="class-fold") as fold, gr.Row(equal_height=False):
        with gr.Column(min_width=280):
            joining = student.joining()
        with gr.Column(min_width=280, scale=2):
            making = make.build(page)
    shown = board.build(page)
    pupils = student.Students(page, classes, verifier, strip, joining, fold)
    pupils.connect()
    teachers = board.Boards(page, classes, shown, code, secret)
    teachers.connect()
    make.connect(page, classes, making, code, secret)

    def open_class(visitor: Any, wanted: Any, key: Any, request: gr.Request) -> dict:
        """A page opens whose address names a class, or whose browser has joined one."""
        with in_words():
            if key:
                return teachers.open(wanted, key, request) | {fold: gr.Accordion(visible=False)}
            return pupils.open(visitor, wanted, page.reach.origin_of(request))

    outputs = [*teachers.outputs, *pupils.outputs, fold]

    def wire() -> None:
        door.click(open_class, [page.visitor, code, secret], outputs, js=_FROM_ADDRESS, **QUIETLY)

    page.later(wire)
    if classes.store.there:
        verifier.wake()  # entries that waited when the server was stopped


class Told:
    """Hears how far a visitor is in a lesson, and tells the class that the visitor has joined."""

    def __init__(self, classes: Classes):
        self.classes = classes

    def __call__(self, visitor: Any, lesson: Lesson, progress: Progress) -> None:
        """Called after whatever a visitor does in a lesson. Never stands in its way."""
        if not self.classes.store.there:
            return
        rows = progress.report(lesson)
        answers = [
            (number, step.ask.question, _worded(step.ask, row["guess"]), _found(step.ask, row))
            for number, (step, row) in enumerate(zip(lesson.steps, rows), 1)
            if step.ask is not None and row["guess"] is not None
        ]
        with contextlib.suppress(ClassError, StoreError):
            self.classes.progress(visitor, lesson.id, sum(row["ticked"] for row in rows), len(rows), answers)


def _worded(ask: Ask, answer: Any) -> str:
    """An answer as the visitor saw it."""
    return str(ask.choices.get(answer, f"{answer} {ask.unit}".strip()) if isinstance(answer, (str, int, float)) else "")


def _found(ask: Ask, row: dict[str, Any]) -> str:
    """What the visitor's own numbers said, and whether the guess was right."""
    if row["truth"] is None:
        return ""
    right = {True: " (right)", False: " (not right)"}.get(row["right"], "")
    return f"{_worded(ask, row['truth'])}{right}"
