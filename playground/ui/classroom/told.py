"""A student's lesson as the class sees it: steps done, each guess, and whether it was right."""

from __future__ import annotations

import contextlib
from typing import Any

from ...lessons.progress import Progress
from ...lessons.reading import Ask, Lesson
from ...service.classes import ClassError, Classes, StoreError
from ..forms.fields import is_number, said


class Told:
    """Passes a visitor's progress in a lesson on to the class that the visitor has joined."""

    def __init__(self, classes: Classes):
        self.classes = classes

    def __call__(self, visitor: Any, lesson: Lesson, progress: Progress) -> None:
        """Call it after each action in a lesson. It never raises ClassError or StoreError."""
        if not self.classes.store.there:
            return
        rows = progress.report(lesson)
        answers = [
            (number, step.ask.question, worded(step.ask, row["guess"]), _found(step.ask, row))
            for number, (step, row) in enumerate(zip(lesson.steps, rows), 1)
            if step.ask is not None and row["guess"] is not None
        ]
        with contextlib.suppress(ClassError, StoreError):
            self.classes.progress(visitor, lesson.id, sum(row["ticked"] for row in rows), len(rows), answers)


def worded(ask: Ask, answer: Any) -> str:
    """An answer as a student sees it: a choice's words, or a number of three digits with its unit."""
    if is_number(answer):
        return f"{said(float(f'{answer:.3g}'))} {ask.unit}".strip()
    return str(ask.choices.get(answer, answer)) if isinstance(answer, str) else ""


def _found(ask: Ask, row: dict[str, Any]) -> str:
    """What the student's own numbers said, and whether the guess was right."""
    if row["truth"] is None:
        return ""
    return worded(ask, row["truth"]) + {True: " (right)", False: " (wrong)"}.get(row["right"], "")
