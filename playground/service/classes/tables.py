"""Answers and results of a class as CSV, for the teacher: names and numbers; nothing identifies a browser."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

from .experiment import size_in_words
from .house import Classes
from .members import Klass, card_from


def results_csv(classes: Classes, klass: Klass) -> str:
    """CSV with a row for every run, and for every student without runs."""
    head = ("number", "name", "joined (UTC)", "lesson", "lesson step", "lesson steps", "text", "seed", "step", "steps",
            "state", "validation loss", "best possible loss", "above it", "size", "parameters", "it wrote")  # fmt: skip
    rows = []
    for student in classes.students(klass):
        who = (student.number, student.name, _at(student.joined), student.lesson, student.step, student.steps)
        for run in student.runs:
            r = run.report
            rows.append((*who, r.text, r.seed, r.step, r.planned, r.state, r.loss, r.floor, r.above,
                         _size(run.letters), r.n_parameters, r.said))  # fmt: skip
        if not student.runs:
            rows.append(who)
    return _csv(head, rows)


def answers_csv(classes: Classes, klass: Klass) -> str:
    """A row for every answer given in a lesson."""
    head = ("number", "name", "at (UTC)", "lesson", "step", "question", "answer", "found")
    rows = [
        (a["number"], a["name"], _at(a["at"]), a["lesson"], a["step"], a["question"], a["answer"], a["found"])
        for a in classes.answers(klass)
    ]
    return _csv(head, rows)


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(head)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return "\ufeff" + out.getvalue()  # the mark by which spreadsheets recognise UTF-8


def _cell(value: object) -> object:
    """A cell's text; an apostrophe before it keeps spreadsheets from taking it for a formula."""
    if isinstance(value, str) and value.lstrip(" ").startswith(
        ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
    ):
        return f"'{value}"
    return "" if value is None else value


def _size(letters: str) -> str:
    card = card_from(letters)
    return size_in_words(card) if card else ""


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
