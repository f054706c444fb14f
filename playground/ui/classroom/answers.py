"""Answers in lessons: what a class learns of a student's, and how often each was given. Everything is escaped."""

from __future__ import annotations

import contextlib
import html
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...lessons.progress import Answer, Progress
from ...lessons.reading import Ask, Lesson, find_lesson
from ...service.classes import ClassError, Classes, StoreError
from ..forms.fields import is_number, said
from .picture import lesson_title

BINS = 8
"""Bars for a question whose answers are numbers."""


def tell(classes: Classes, visitor: Any, lesson: Lesson, progress: Progress) -> None:
    """Pass a visitor's progress in a lesson on to the class that the visitor has joined, after each action in it.

    Never raises ClassError or StoreError.
    """
    if not classes.store.there:
        return
    given = [(number, step.ask, progress.answer(lesson, step)) for number, step in enumerate(lesson.steps, 1)]
    answers = [
        (number, ask.question, worded(ask, answer.guess), _found(ask, answer))
        for number, ask, answer in given
        if ask is not None and answer.guess is not None
    ]
    with contextlib.suppress(ClassError, StoreError):
        classes.progress(visitor, lesson.id, sum(progress.ticked(lesson)), len(lesson.steps), answers)


def worded(ask: Ask, answer: Any) -> str:
    """An answer as a student sees it: a choice's words, or a number of three digits with its unit."""
    if ask.number is not None and is_number(answer):
        return f"{said(float(f'{answer:.3g}'))} {ask.number.unit}".strip()
    return str(ask.choices.get(answer, answer))


def _found(ask: Ask, answer: Answer) -> str:
    """The answer in the student's own numbers, and whether the guess was right."""
    if answer.truth is None:
        return ""
    return worded(ask, answer.truth) + {True: " (right)", False: " (wrong)"}.get(answer.right, "")


def answers_html(rows: Sequence[Mapping[str, Any]], students: int) -> str:
    """Every question that anybody answered, in the lesson's order.

    Args:
        rows: answers with `lesson`, `step`, `question`, `answer` and `found`.
        students: the class's students.
    """
    asked: dict[tuple, list[Mapping[str, Any]]] = {}
    for row in rows:
        asked.setdefault((row["lesson"], row["step"], row["question"]), []).append(row)
    several = len({lesson for lesson, *_ in asked}) > 1
    parts = []
    for (lesson, step, question), given in sorted(asked.items(), key=lambda item: item[0][:2]):
        where = f"{lesson_title(lesson)}, step {step}" if several else f"Step {step}"
        counts = f"{len(given)} of {students} answered"
        judged = [row["found"] for row in given if row["found"].endswith(")")]
        counts += f", {sum(found.endswith('(right)') for found in judged)} right" if judged else ""
        bars = histogram([row["answer"] for row in given], _ask_of(lesson, step, question))
        most = max(count for _, count in bars) or 1
        drawn = "".join(
            f'<li><span>{html.escape(label)}</span><i style="--share: {count / most:.3f}"></i><b>{count}</b></li>'
            for label, count in bars
        )
        parts.append(
            f'<div class="histogram"><h4><small>{html.escape(where)}</small> {html.escape(question)}</h4>'
            f'<p class="quiet">{counts}</p><ul>{drawn}</ul></div>'
        )
    return f'<div class="histograms">{"".join(parts)}</div>'


def histogram(given: Sequence[str], ask: Ask | None) -> list[tuple[str, int]]:
    """(answer, how often it was given): choices in the question's order, numbers in equal parts of its scale.

    Args:
        ask: the question; None if its lesson no longer asks it.
    """
    counts = Counter(given)
    if ask is None:
        return counts.most_common()
    if ask.choices:
        return [(text, counts[text]) for text in ask.choices.values()]
    scale = ask.number
    numbers = [float(answer.split()[0].replace(",", "")) for answer in given]
    found, edges = np.histogram(numbers, BINS, (scale.least, scale.most))
    labels = [f"{low:g} to {high:g} {scale.unit}".strip() for low, high in pairwise(edges)]
    return list(zip(labels, found.tolist()))


def _ask_of(lesson: str, step: int, question: str) -> Ask | None:
    steps = found.steps[step - 1 : step] if (found := find_lesson(lesson)) else ()
    return next((each.ask for each in steps if each.ask and each.ask.question == question), None)
