"""A lesson file → Lesson: JSON without code. docs/lessons.md says what a file may hold."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    model_validator,
)
from typing_extensions import Self

from .facts import is_fact, is_word
from .vocabulary import DOINGS, PLACES, SETS, TABS, VIEWS

FILES = Path(__file__).parent / "files"
VARIABLE = "PLAYGROUND_LESSONS"
"""The environment variable that names a folder with a teacher's own lesson files."""


def facts_in(words: str) -> list[str]:
    """The names in braces in a sentence."""
    return re.findall(r"\{([^{}]*)\}", words)


def _closed(words: str) -> str:
    if "{" in re.sub(r"\{[^{}]*\}", "", words):
        raise ValueError("a “{” is not closed")
    return words


def _sets(sets: dict[str, Any]) -> dict[str, Any]:
    for name, known in {"tab": TABS, "view": VIEWS}.items():
        if sets.get(name, known[0]) not in known:
            raise ValueError(f"“{name}” is one of {', '.join(known)}")
    if isinstance(text := sets.get("train.text"), list):
        sets["train.text"] = "\n".join(text)
    return sets


def _comparisons(words: str) -> list[tuple[str, ...]]:
    """`loss < bigram and gap > 0.1` → [(left, operator, right), …]."""
    parts = [re.fullmatch(r"\s*(\S+)\s+(<=|>=|<|>|is not|is)\s+(\S+)\s*", part) for part in words.split(" and ")]
    if None in parts:
        raise ValueError(f"“{words}” is no comparison such as “loss < 2” or “winner is dense”")
    for left, how, right in (comparisons := [part.groups() for part in parts]):
        if not how.startswith("is") and (is_word(left) or is_word(right)):
            raise ValueError(f"“{left} {how} {right}” compares a word: use “is” or “is not”")
    return comparisons


def _listed(given: Any) -> list[Any]:
    """A single sentence or answer as a list of cases."""
    return given if isinstance(given, list) else [given if isinstance(given, dict) else {"say": given}]


Sentence = Annotated[str, AfterValidator(_closed)]
Place = Literal[tuple(PLACES)]
Controls = Annotated[dict[Literal[SETS], str | int | float | bool | list[str]], AfterValidator(_sets)]
"""The values to which controls are set, by the names in SETS."""
Condition = Annotated[list[tuple[str, str, str]], BeforeValidator(_comparisons)]
"""Comparisons of facts with facts, numbers or words, as (left, operator, right); all must hold."""


class Part(BaseModel):
    """An object in a file: no field may be missing or unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Case(Part):
    """A sentence (`say`) or an answer (`is`), with the condition for it."""

    says: Annotated[Sentence, Field(validation_alias=AliasChoices("say", "is"))]
    when: Condition = []


Cases = Annotated[list[Case], BeforeValidator(_listed)]
"""The first case that holds counts."""


class Done(Part):
    """What the visitor has to do: one of DOINGS; see docs/lessons.md."""

    run: Literal["finished"] | None = None
    of: str = "run"
    pair: Literal["finished"] | None = None
    balance: Literal["finished"] | None = None
    when: Condition = []
    pressed: Place | None = None
    times: int = 1
    shown: Place | None = None
    changed: Place | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(bool(getattr(self, kind)) for kind in DOINGS) != 1:
            raise ValueError(f"“done” needs one of {', '.join(DOINGS)}")
        return self

    @property
    def kind(self) -> str:
        """Which of DOINGS it is."""
        return next(kind for kind in DOINGS if getattr(self, kind))

    @property
    def place(self) -> str:
        """The place that has to be pressed, shown or changed; empty for other actions."""
        return self.pressed or self.shown or self.changed or ""


class Scale(Part):
    """The numbers that a visitor may guess."""

    least: FiniteFloat
    most: FiniteFloat
    step: FiniteFloat
    unit: str = ""
    near: float = 0.0
    """A guess this far off still counts as right."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 0 < self.step <= self.most - self.least:
            raise ValueError("the scale has to go up, in steps that fit into it")
        return self


class Ask(Part):
    """A question that the visitor's own numbers answer, by one of its choices or by a number."""

    question: Sentence
    right: Cases
    """The first case that holds gives the answer: a choice's name, or a fact or number."""
    choices: dict[str, str] = {}
    number: Scale | None = None
    covers: list[Place] = []
    """Names from PLACES: where the answer stands, covered until the guess."""
    until: Literal["guess", "done"] = "guess"
    """With `done`, they stay covered until the step is done: what is there before might pass for the answer."""

    @property
    def compared(self) -> list[str]:
        """The facts and numbers on which the answer depends."""
        parts = [part for case in self.right for part in case.when]
        answers = [case.says for case in self.right if case.says not in (*self.choices, "unclear")]
        return [*_operands(parts), *answers]


class Step(Part):
    """One thing to understand."""

    id: str
    title: str
    say: Sentence
    sets: Annotated[Controls, Field(alias="set")] = {}
    point: Place | None = None
    ask: Ask | None = None
    done: Done | None = None
    """None if the step only asks."""
    show: list[Cases] = []
    """From each group, the page says the first case that holds."""
    then: Place | None = None
    """The place pointed at once the step is done; None for the place where it was done."""

    @property
    def doing(self) -> str:
        """Which of DOINGS the step waits for; empty for none."""
        return self.done.kind if self.done else ""

    @property
    def names(self) -> list[str]:
        """The facts that the step must have to be shown at all."""
        return facts_in(self.say + (self.ask.question if self.ask else ""))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.ask is None and self.done is None:
            raise ValueError("a step needs something to guess (“ask”) or to do (“done”)")
        if self.ask and bool(self.ask.choices) == bool(self.ask.number):
            raise ValueError("“ask” needs “choices” or “number”")
        if self.ask and self.ask.number and any(is_word(case.says) for case in self.ask.right):
            raise ValueError("“right” has to be a number, as “number” is")
        return self


class Needed(Part):
    """What is required of a run: its text's name, what the visitor's own text holds, its mask."""

    text: str = ""
    holds: str = ""
    causal: bool = True


class Lesson(Part):
    """A sequence of a few steps."""

    id: str
    number: int
    title: str
    about: str
    steps: Annotated[list[Step], Field(min_length=1)]
    scene: Controls = {}
    """The panels' values as it begins; those not named are as on a new page."""
    runs: dict[str, Needed] = {}
    """Names of runs → what the visitor's run needs to count as that one."""
    prompt: str = ""
    """The prompt for facts about a run's writing; empty for the run's own."""
    group: str = ""
    """Its heading in the list of lessons; empty for the main path."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for step in self.steps:
            shown = [case for group in step.show for case in group]
            names = [*step.names, *(name for case in shown for name in facts_in(case.says))]
            names += _operands(part for case in shown for part in case.when)
            names += [*(step.ask.compared if step.ask else ()), *_operands(step.done.when if step.done else ())]
            for name in names:
                if not is_fact(name, self.runs):
                    raise ValueError(f"step {step.id}: there is no fact called “{name}”")
        return self


def _operands(parts: Iterable[tuple[str, str, str]]) -> list[str]:
    """The facts and numbers in comparisons; what follows `is` may be any word."""
    return [name for left, how, right in parts for name in ((left,) if how.startswith("is") else (left, right))]


@lru_cache(maxsize=1)
def all_lessons() -> tuple[Lesson, ...]:
    """The shipped lessons and those in VARIABLE's folder, by number; unreadable files are left out."""
    found = {path.stem: read_lesson(path) for path in sorted(FILES.glob("*.json"))}
    folder = os.environ.get(VARIABLE)
    for path in sorted(Path(folder).glob("*.json")) if folder else ():
        try:
            found.setdefault(path.stem, read_lesson(path))
        except (OSError, TypeError, ValueError) as problem:
            print(f"{path} is left out: {problem}", file=sys.stderr)
    return tuple(sorted(found.values(), key=lambda lesson: (lesson.number, lesson.id)))


def find_lesson(name: Any) -> Lesson | None:
    """The lesson with this id or number."""
    return next((lesson for lesson in all_lessons() if str(name) in (lesson.id, str(lesson.number))), None)


def read_lesson(path: Path) -> Lesson:
    """The lesson in a file; its id is the file's name. Raises ValueError: what is wrong, and where."""
    return Lesson.model_validate(json.loads(path.read_bytes()) | {"id": path.stem})
