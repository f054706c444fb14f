"""Progress: which lesson is open and where, what was done and guessed, as one small value that the browser keeps.

The value comes back from the browser, so anybody may have written it: what does not fit a lesson is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..service.limits import LESSON_RUNS, LESSON_WORDS
from .judging import checked
from .reading import Lesson, Step, all_lessons

Value = float | int | str


@dataclass
class Answer:
    """What a visitor did in one step."""

    guess: Value | None = None
    truth: Value | None = None
    right: bool | None = None
    done: bool = False
    """Whether the thing to do was done."""
    told: tuple[str, ...] = ()
    """What the page said then; of the open lesson only."""

    def ticked(self, step: Step) -> bool:
        """Whether nothing is left of the step: guessed where it asks, done where there is something to do."""
        return (step.ask is None or self.guess is not None) and (not step.done or self.done)


@dataclass
class Progress:
    """All lessons of one visitor."""

    lesson: str = ""
    """The id of the open one; empty for none."""
    step: int = 0
    folded: bool = False
    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)
    """Lesson → step → what was done."""
    before: dict[str, list[str]] = field(default_factory=dict)
    """Lesson → the ids of the runs that were there when it was begun, which do not count for it."""

    def answer(self, lesson: Lesson, step: Step) -> Answer:
        """What was done in a step, to be written to."""
        return self.answers.setdefault(lesson.id, {}).setdefault(step.id, Answer())

    def ticked(self, lesson: Lesson) -> list[bool]:
        """Which steps of a lesson are done."""
        known = self.answers.get(lesson.id, {})
        return [known.get(step.id, Answer()).ticked(step) for step in lesson.steps]

    def report(self, lesson: Lesson) -> list[dict[str, Any]]:
        """A row for each step: its id, whether it is ticked, the guess, the truth, and whether the guess was right."""
        known = self.answers.get(lesson.id, {})
        found = [(step, known.get(step.id, Answer())) for step in lesson.steps]
        return [
            {"step": step.id, "ticked": a.ticked(step), "guess": a.guess, "truth": a.truth, "right": a.right}
            for step, a in found
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the browser, without what says nothing."""
        answers = {
            lesson: {step: _kept(answer, lesson == self.lesson) for step, answer in steps.items()}
            for lesson, steps in self.answers.items()
        }
        return {
            "lesson": self.lesson, "step": self.step, "folded": self.folded, "before": self.before, "answers": answers
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Any) -> Progress:
        """What a browser sent; anything that no lesson could have left there is dropped."""
        if not isinstance(values, dict):
            return cls()
        found, lessons = cls(), {lesson.id: lesson for lesson in all_lessons()}
        found.folded = values.get("folded") is True
        given = values.get("answers")
        for name, steps in given.items() if isinstance(given, dict) else ():
            if name in lessons and isinstance(steps, dict):
                read = {step.id: _read(step, steps[step.id]) for step in lessons[name].steps if step.id in steps}
                found.answers[name] = read
        before = values.get("before")
        for name, runs in before.items() if isinstance(before, dict) else ():
            if name in lessons and isinstance(runs, list):
                found.before[name] = [run for run in runs if isinstance(run, str) and len(run) < 80][-LESSON_RUNS:]
        open_one, step = values.get("lesson"), values.get("step")
        if isinstance(open_one, str) and open_one in lessons:
            found.lesson = open_one
            last = len(lessons[found.lesson].steps) - 1
            found.step = min(max(step, 0), last) if isinstance(step, int) and not isinstance(step, bool) else 0
        return found


def _kept(answer: Answer, whole: bool) -> dict[str, Any]:
    values = {"guess": answer.guess, "truth": answer.truth, "right": answer.right, "done": answer.done or None}
    if whole and answer.told:
        values["told"] = list(answer.told)
    return {name: value for name, value in values.items() if value is not None}


def _read(step: Step, values: Any) -> Answer:
    if not isinstance(values, dict):
        return Answer()
    try:
        guess = checked(step.ask, values["guess"]) if step.ask is not None and "guess" in values else None
    except (ValueError, TypeError):
        guess = None
    truth, right, told = values.get("truth"), values.get("right"), values.get("told")
    truth = truth[:LESSON_WORDS] if isinstance(truth, str) else truth if _is_number(truth) else None
    told = told[:12] if isinstance(told, list) else ()
    told = tuple(words[:LESSON_WORDS] for words in told if isinstance(words, str))
    return Answer(guess, truth, right if isinstance(right, bool) else None, values.get("done") is True, told)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
