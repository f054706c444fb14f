"""Progress: which lesson and step are open, what was done and guessed, as one small value that the browser keeps.

The value comes back from the browser, so anybody may have written it: parts that do not fit a lesson are dropped.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ..service.limits import LESSON_RUNS, LESSON_WORDS
from .judging import checked
from .reading import Lesson, Step, all_lessons

Words = Annotated[str, AfterValidator(lambda words: words[:LESSON_WORDS])]
Value = Annotated[float, Field(allow_inf_nan=False)] | int | Words


@dataclass
class Answer:
    """What a visitor did in one step."""

    guess: Value | None = None
    truth: Value | None = None
    right: bool | None = None
    done: bool = False
    """Whether the step's task was done."""
    told: Annotated[tuple[Words, ...], Field(max_length=12)] = ()
    """What the page then said; only for the open lesson."""

    def ticked(self, step: Step) -> bool:
        """Whether the step is complete: its question is answered and its task is done, if it has them."""
        return not self.asked(step) and (not step.done or self.done)

    def asked(self, step: Step) -> bool:
        """Whether the step has a question that is not yet answered."""
        return step.ask is not None and self.guess is None

    def possible(self, step: Step) -> bool:
        """Whether this can be an answer to the step."""
        try:
            return self.guess is None or (step.ask is not None and checked(step.ask, self.guess) == self.guess)
        except ValueError:
            return False


@dataclass
class Progress:
    """All lessons of one visitor."""

    lesson: str = ""
    """The id of the open lesson; empty for none."""
    step: int = 0
    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)
    """Lesson → step → answer."""
    before: dict[str, list[Annotated[str, Field(max_length=80)]]] = field(default_factory=dict)
    """Lesson → the ids of the runs that existed when it was begun, which do not count for it."""

    def answer(self, lesson: Lesson, step: Step) -> Answer:
        """The answer in a step, made if needed; callers may change it."""
        return self.answers.setdefault(lesson.id, {}).setdefault(step.id, Answer())

    def ticked(self, lesson: Lesson) -> list[bool]:
        """Which steps of a lesson are done."""
        known = self.answers.get(lesson.id, {})
        return [known.get(step.id, Answer()).ticked(step) for step in lesson.steps]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the browser, without empty ones."""
        others = {name: {"__all__": {"told"}} for name in self.answers if name != self.lesson}
        return _PROGRESS.dump_python(self, mode="json", exclude_defaults=True, exclude={"answers": others})

    @classmethod
    def from_dict(cls, values: Any) -> Progress:
        """Read what a browser sent; drops what no lesson could have stored."""
        try:
            found = _PROGRESS.validate_python(values)
        except ValidationError:
            return cls()
        lessons = {lesson.id: lesson for lesson in all_lessons()}
        steps = {(lesson.id, step.id): step for lesson in lessons.values() for step in lesson.steps}
        found.answers = {
            name: {at: a for at, a in answers.items() if (name, at) in steps and a.possible(steps[name, at])}
            for name, answers in found.answers.items()
            if name in lessons
        }
        found.before = {name: runs[-LESSON_RUNS:] for name, runs in found.before.items() if name in lessons}
        open_one = lessons.get(found.lesson)
        found.lesson, last = (open_one.id, len(open_one.steps) - 1) if open_one else ("", 0)
        found.step = min(max(found.step, 0), last)
        return found


_PROGRESS = TypeAdapter(Progress)
