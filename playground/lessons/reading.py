"""A lesson file → Lesson: JSON without code, checked against bounds; an error says what is wrong, and where.

docs/lessons.md says what a file may hold.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from typing_extensions import Self

from .facts import FACTS, is_fact
from .vocabulary import DOINGS, PLACES, SETS, TABS, VIEWS

FILES = Path(__file__).parent / "files"
VARIABLE = "PLAYGROUND_LESSONS"
"""The environment variable that names a folder with a teacher's own lesson files."""

MOST_BYTES = 60_000
MOST_LESSONS = 40


class LessonError(ValueError):
    """What is wrong with a lesson file, and where."""


# ---- single values ---------------------------------------------------------------------------------------------------


def _fact(name: str, runs: Collection[str]) -> str:
    if not is_fact(name, runs):
        raise ValueError(f"there is no fact called “{name[:40]}”; there are {', '.join(FACTS)}")
    return name


def _operand(value: str, info: ValidationInfo) -> str:
    """A fact, or a number."""
    try:
        float(value)
    except ValueError:
        _fact(value, info.context)
    return value


def _with_facts(words: str, info: ValidationInfo) -> str:
    """Check that every {…} in the words is a fact."""
    for name in re.findall(r"\{([^{}]*)\}", words):
        _fact(name, info.context)
    if re.sub(r"\{[^{}]*\}", "", words).count("{"):
        raise ValueError("a “{” that is not closed")
    return words


def _sets(sets: dict[str, Any]) -> dict[str, Any]:
    for name, known in {"tab": TABS, "view": VIEWS}.items():
        if sets.get(name, known[0]) not in known:
            raise ValueError(f"“{name}” is one of {', '.join(known)}")
    if isinstance(text := sets.get("train.text"), list):
        sets["train.text"] = "\n".join(text)
    if lists := [name for name, value in sets.items() if isinstance(value, list) and name != "model"]:
        raise ValueError(f"“{lists[0]}” cannot be a list")
    return sets


def _cases(key: str) -> BeforeValidator:
    """A value, or a list of cases; the first case that holds counts. `key` names a case's value in the file."""

    def listed(given: Any) -> Any:
        cases = given if isinstance(given, list) else [given if isinstance(given, dict) else {key: given}]
        return [
            {"says" if name == key else name: value for name, value in case.items()} if isinstance(case, dict) else case
            for case in cases
        ]

    return BeforeValidator(listed)


def _text(most: int) -> Any:
    return Annotated[str, Field(max_length=most)]


Written = BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value)
Sentences = Annotated[_text(700), AfterValidator(_with_facts)]
Place = Literal[tuple(PLACES)]
Number = Annotated[float, Field(allow_inf_nan=False, lt=1e12, gt=-1e12)]
Controls = Annotated[dict[Literal[SETS], str | int | float | bool | list[StrictStr]], AfterValidator(_sets)]
"""The values to which controls are set, by the names in SETS."""
RunName = Annotated[str, StringConstraints(pattern="^[a-z]{1,20}$")]


# ---- the parts of a file ---------------------------------------------------------------------------------------------


class Part(BaseModel):
    """An object in a file: no field may be missing or unknown."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Condition(Part):
    """Comparisons of facts with facts, numbers or words; all must hold: `loss < bigram and gap > 0.1`."""

    parts: list[tuple[str, str, str]]
    """(left, operator, right) as in the file."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, words: Any, info: ValidationInfo) -> Any:
        parts = []
        for part in str(words).split(" and "):
            found = re.fullmatch(r"\s*(\S+)\s+(<=|>=|<|>|is not|is)\s+(\S+)\s*", part)
            if found is None:
                raise ValueError(f"“{part[:60]}” is no comparison such as “loss < 2” or “winner is dense”")
            left, how, right = found.groups()
            _fact(left, info.context)
            if how not in ("is", "is not"):
                _operand(right, info)
            parts.append((left, how, right))
        return {"parts": parts}


class Case(Part):
    """A sentence or an answer, with the condition for it."""

    says: Annotated[_text(700), Written]
    when: Condition | None = None


Cases = Annotated[list[Case], Field(min_length=1, max_length=8)]


class Done(Part):
    """What the visitor has to do: one of DOINGS; see docs/lessons.md."""

    run: Literal["finished"] | None = None
    of: RunName = "run"
    pair: Literal["finished"] | None = None
    balance: Literal["finished"] | None = None
    when: Condition | None = None
    pressed: Place | None = None
    times: Annotated[int, Field(ge=1, le=9)] = 1
    shown: Place | None = None
    changed: Place | None = None

    @property
    def kind(self) -> str:
        """Which of DOINGS it is."""
        return next(kind for kind in DOINGS if getattr(self, kind) is not None)

    @property
    def place(self) -> str:
        """The place that has to be pressed, shown or changed; empty for other actions."""
        return self.pressed or self.shown or self.changed or ""

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if sum(getattr(self, kind) is not None for kind in DOINGS) != 1:
            raise ValueError(f"it needs one of {', '.join(DOINGS)}")
        if self.of not in (*info.context, "run"):
            raise ValueError(f"there is no run called “{self.of}”; “runs” has to name it")
        return self


class Ask(Part):
    """A question that the visitor's own numbers answer."""

    question: Sentences
    kind: Literal["choice", "number"]
    right: Annotated[Cases, _cases("is")]
    """The first case that holds gives the answer: a choice's name, or a fact or number."""
    choices: Annotated[dict[str, _text(160)], Field(max_length=6)] = {}
    least: Number = 0.0
    most: Number = 1.0
    step: Annotated[Number, Field(gt=0)] = 0.1
    unit: _text(30) = ""
    near: Annotated[Number, Field(ge=0)] = 0.0
    """A guess this far off still counts as right."""
    covers: list[Place] = []
    """Names from PLACES: where the answer stands, covered until the guess."""
    until: Literal["guess", "done"] = "guess"
    """With `done`, they stay covered until the step is done: what is there before might pass for the answer."""

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, given: Any) -> Any:
        """Read the file's form, where the name of the choices or of the scale gives the kind."""
        kinds = [kind for kind in ("choices", "number") if kind in given]
        if len(kinds) != 1:
            raise ValueError("it needs “choices” or “number”")
        if kinds == ["choices"]:
            return {**given, "kind": "choice"}
        return (
            {name: value for name, value in given.items() if name not in kinds} | given[kinds[0]] | {"kind": kinds[0]}
        )

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if self.kind == "number" and (missing := {"least", "most", "step"} - self.model_fields_set):
            raise ValueError(f"its scale has no “{min(missing)}”")
        if self.kind == "choice" and len(self.choices) < 2:
            raise ValueError("two to six choices")
        if not self.step <= self.most - self.least:
            raise ValueError("the scale has to go up, in steps that fit into it")
        for case in self.right:
            if self.kind != "choice":
                _operand(case.says, info)
            elif case.says not in (*self.choices, "unclear") and not is_fact(case.says, info.context):
                raise ValueError(f"“{case.says[:40]}” is none of its choices, nor “unclear”")
        return self


class Step(Part):
    """One thing to understand."""

    id: Annotated[str, StringConstraints(pattern="^[a-z0-9-]{1,30}$")]
    title: _text(60)
    say: Sentences
    sets: Annotated[Controls, Field(alias="set")] = {}
    point: Place | None = None
    ask: Ask | None = None
    done: Done | None = None
    """None if the step only asks."""
    show: Annotated[list[Annotated[Cases, _cases("say")]], Field(max_length=8)] = []
    """From each group, the page says the first case that holds."""
    then: Place | None = None
    """The place pointed at once the step is done; None for the place where it was done."""

    @property
    def doing(self) -> str:
        """Which of DOINGS the step waits for; empty for none."""
        return self.done.kind if self.done else ""

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if self.ask is None and self.done is None:
            raise ValueError("a step needs something to guess (“ask”) or to do (“done”)")
        for case in (case for group in self.show for case in group):
            _with_facts(case.says, info)
        return self


class Needed(Part):
    """What is required of a run: its text's name, what the visitor's own text holds, its mask."""

    text: _text(60) = ""
    holds: _text(160) = ""
    causal: bool = True


class Lesson(Part):
    """A sequence of a few steps."""

    id: Annotated[str, StringConstraints(pattern="^[a-z0-9-]{1,40}$")]
    number: int
    title: _text(60)
    about: _text(700)
    steps: Annotated[list[Step], Field(min_length=3, max_length=9)]
    scene: Controls = {}
    """The panels' values as it begins; those not named are as on a new page."""
    runs: dict[RunName, Needed] = {}
    """Names of runs → what the visitor's run needs to count as that one."""
    prompt: _text(160) = ""
    """The prompt for facts about a run's writing; empty for the run's own."""
    group: _text(60) = ""
    """Its heading in the list of lessons; empty for the main path."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len({step.id for step in self.steps}) < len(self.steps):
            raise ValueError("two steps have the same id")
        if "chosen" in self.runs:
            raise ValueError("no run can be called “chosen”, which is the model chosen at the top")
        return self


# ---- lessons ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def all_lessons() -> tuple[Lesson, ...]:
    """The shipped lessons and those in VARIABLE's folder, by number; unreadable files are left out."""
    found = {path.stem: read_lesson(path.read_bytes(), path.stem) for path in sorted(FILES.glob("*.json"))}
    folder = os.environ.get(VARIABLE)
    for path in sorted(Path(folder).glob("*.json"))[:MOST_LESSONS] if folder else ():
        try:
            if path.stem in found:
                raise LessonError(f"there is a lesson called “{path.stem}” already: give the file another name")
            found[path.stem] = read_lesson(path.read_bytes(), path.stem)
        except (OSError, LessonError) as problem:
            print(f"{path} is left out: {problem}", file=sys.stderr)
    return tuple(sorted(found.values(), key=lambda lesson: (lesson.number, lesson.id)))


def find_lesson(name: Any) -> Lesson | None:
    """The lesson with this id or number."""
    return next((lesson for lesson in all_lessons() if str(name) in (lesson.id, str(lesson.number))), None)


def read_lesson(data: bytes | str, name: str) -> Lesson:
    """The lesson in a file's bytes; its id is the file's name. Raises LessonError."""
    if len(data) > MOST_BYTES:
        raise LessonError(f"a lesson has at most {MOST_BYTES:,} bytes, this one {len(data):,}")
    try:
        values = {**json.loads(data), "id": name}
    except (ValueError, TypeError, RecursionError) as problem:
        raise LessonError(f"this is no JSON object: {problem}") from None
    runs = values.get("runs")
    try:
        return Lesson.model_validate(values, context=frozenset(runs if isinstance(runs, dict) else ()))
    except ValidationError as problem:
        error = problem.errors()[0]
    where = [str(part + 1 if isinstance(part, int) else part) for part in error["loc"]]
    where = " ".join(where).replace("steps ", "step ", 1) or "the lesson"
    raise LessonError(f"{where}: {error['msg'].removeprefix('Value error, ')}")
