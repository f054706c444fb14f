"""A lesson file → Lesson: JSON with no code inside, held to bounds, refused in a sentence that says where and what.

docs/lessons.md says what a file may hold.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from typing_extensions import Self, TypedDict

from .facts import FACTS, is_fact
from .vocabulary import DOINGS, PLACES, SETS, TABS, VIEWS, WATCHED

FILES = Path(__file__).parent / "files"
VARIABLE = "PLAYGROUND_LESSONS"
"""The environment variable that names a folder with a teacher's own lesson files."""

MOST_BYTES = 60_000
MOST_LESSONS = 40
STEPS = (5, 9)
TITLE, SENTENCES, CHOICE = 60, 700, 160
"""Characters of a title, of a step's words, of a choice."""
MOST_SHOWN = 8
"""Sentences that a step may show."""


class LessonError(ValueError):
    """What is wrong with a lesson file, and where."""


# ---- checks of single values -----------------------------------------------------------------------------------------


def _known_place(name: str) -> str:
    if name not in PLACES:
        raise ValueError(f"there is no place called “{name[:40]}”; there are {', '.join(PLACES)}")
    return name


def _with_facts(words: str, info: ValidationInfo) -> str:
    """Every {…} in the words is a fact."""
    for name in re.findall(r"\{([^{}]*)\}", words):
        _fact(name, info.context)
    if re.sub(r"\{[^{}]*\}", "", words).count("{"):
        raise ValueError("a “{” that is not closed")
    return words


def _fact(name: str, runs: Collection[str]) -> None:
    if not is_fact(name, runs):
        raise ValueError(f"there is no fact called “{name[:40]}”; there are {', '.join(FACTS)}")


def _operand(value: str, runs: Collection[str]) -> None:
    if is_fact(value, runs):
        return
    try:
        float(value)
    except ValueError:
        raise ValueError(f"“{value[:40]}” is neither a number nor a fact; there are {', '.join(FACTS)}") from None


def _sets(sets: dict[str, Any]) -> dict[str, Any]:
    for name, value in sets.items():
        if name not in SETS:
            raise ValueError(f"there is no control called “{name[:40]}” to set; there are {', '.join(SETS)}")
        if name == "train.text" and isinstance(value, list):
            sets[name] = value = "\n".join(map(str, value))
        if name == "model" and isinstance(value, list):
            if not 1 <= len(value) <= 4 or not all(isinstance(model, str) for model in value):
                raise ValueError("“model” is one name, or up to four to take the first of that is there")
            continue
        if not isinstance(value, (str, int, float, bool)):
            raise ValueError(f"“{name}” can be set to words, a number, true or false only")
        known = {"tab": TABS, "view": VIEWS}.get(name)
        if known and value not in known:
            raise ValueError(f"“{name}” has to be one of {', '.join(known)}")
    return sets


def _done(done: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    if not done:
        return {}
    kinds = [kind for kind in DOINGS if kind in done]
    if len(kinds) != 1:
        raise ValueError(f"“done” needs one of {', '.join(DOINGS)}")
    kind, value = kinds[0], done[kinds[0]]
    allowed = {"run": "of", "control": "is", "pressed": "times"}.get(kind)
    if others := done.keys() - {kind, allowed}:
        raise ValueError(f"“done” has nothing called “{sorted(others)[0]}” beside “{kind}”")
    if kind in ("run", "pair", "balance"):
        if value not in ("begun", "finished"):
            raise ValueError(f"a {kind} can be “begun” or “finished”")
        if done.get("of", "run") not in (*info.context, "run"):
            raise ValueError(f"there is no run called “{done['of']}”; “runs” has to name it")
    elif kind == "when":
        Condition.read(value, info)
    elif kind == "control":
        if value not in WATCHED:
            raise ValueError(f"no step can wait for a control “{str(value)[:40]}”; only for {', '.join(WATCHED)}")
        if not isinstance(done.get("is", ""), (str, int, float, bool)):
            raise ValueError("“is” has to be words, a number, true or false")
    else:
        _known_place(value if isinstance(value, str) else "")
        times = done.get("times", 1)
        if type(times) is not int or not 1 <= times <= 9:
            raise ValueError("“times” is a whole number from 1 to 9")
    return done


def _compared(words: Any) -> tuple[tuple[str, str, str], ...]:
    parts = []
    for part in str(words).split(" and "):
        found = re.fullmatch(r"\s*(\S+)\s+(<=|>=|<|>|is not|is)\s+(\S+)\s*", part)
        if found is None:
            raise ValueError(f"“{part[:60]}” is no comparison such as “loss < 2” or “winner is dense”")
        parts.append(found.groups())
    return tuple(parts)


def _runs(runs: dict[str, Any]) -> dict[str, Any]:
    for run in runs:
        if not re.fullmatch(r"[a-z]{1,20}", run) or run == "chosen":
            raise ValueError(f"a run is named by small letters, and not “chosen”; this one is “{run[:40]}”")
    return runs


def _cases(key: str) -> BeforeValidator:
    """A value, or a list of cases; the first that holds counts. `key` is the name of a case's value in the file."""

    def listed(given: Any) -> Any:
        cases = given if isinstance(given, list) else [given if isinstance(given, dict) else {key: given}]
        if not 1 <= len(cases) <= 8:
            raise ValueError("one to eight cases")
        return [
            {"says" if name == key else name: value for name, value in each.items()} if isinstance(each, dict) else each
            for each in cases
        ]

    return BeforeValidator(listed)


def _written(value: Any) -> Any:
    return str(value) if isinstance(value, (int, float)) else value


Title = Annotated[str, Field(max_length=TITLE)]
Choice = Annotated[str, Field(max_length=CHOICE)]
Sentences = Annotated[str, Field(max_length=SENTENCES), AfterValidator(_with_facts)]
Place = Annotated[str, AfterValidator(_known_place)]
Number = Annotated[float, Field(allow_inf_nan=False, lt=1e12, gt=-1e12)]


# ---- the parts of a file ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """Comparisons of facts with facts, numbers or words, which all have to hold: `loss < bigram and gap > 0.1`."""

    parts: tuple[tuple[str, str, str], ...]
    """(left, operator, right) as they stand in the file."""

    @classmethod
    def read(cls, words: Any, info: ValidationInfo) -> Self:
        """Read it from a file. Raises ValueError."""
        condition = cls(_compared(words))
        for left, how, right in condition.parts:
            _fact(left, info.context)
            if how not in ("is", "is not"):
                _operand(right, info.context)
        return condition


class Part(BaseModel):
    """An object of a file: nothing may be missing, nothing left over."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Case(Part):
    """Something said, or an answer, with what has to hold for it."""

    says: Annotated[str, Field(max_length=SENTENCES), BeforeValidator(_written)]
    when: Annotated[Condition | None, BeforeValidator(Condition.read)] = None


class Ask(Part):
    """A question, whose answer the visitor's own numbers decide."""

    question: Sentences
    kind: str
    """choice, number or curve: of the last, the end is asked for."""
    right: Annotated[list[Case], _cases("is")]
    """The first that holds is the answer: a choice's name, or a fact or number."""
    choices: dict[str, Choice] = {}
    least: Number = 0.0
    most: Number = 1.0
    step: Number = 0.1
    unit: Annotated[str, Field(max_length=30)] = ""
    near: Number = 0.0
    """How far off counts as right."""
    start: Annotated[str, BeforeValidator(_written)] = ""
    """Of a curve: the fact or number where it begins."""
    covers: list[Place] = []
    """Names in PLACES: where the answer stands, covered until the guess."""

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, given: Any) -> Any:
        """In the file, the name of the choices or of the scale says the kind."""
        kinds = [kind for kind in ("choices", "number", "curve") if isinstance(given, dict) and kind in given]
        if len(kinds) != 1:
            raise ValueError("it needs one of “choices”, “number” and “curve”")
        kind, scale = kinds[0], given[kinds[0]]
        if kind == "choices":
            return given | {"kind": "choice"}
        needed = ("least", "most", "step", *(["start"] if kind == "curve" else []))
        if missing := [name for name in needed if not isinstance(scale, dict) or name not in scale]:
            raise ValueError(f"its scale has no “{missing[0]}”")
        return {name: value for name, value in given.items() if name != kind} | scale | {"kind": kind}

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if self.kind == "choice":
            if not 2 <= len(self.choices) <= 6:
                raise ValueError(f"two to six choices, of at most {CHOICE} characters each")
            for case in self.right:
                if case.says not in self.choices and case.says != "unclear" and not is_fact(case.says, info.context):
                    raise ValueError(f"“{case.says[:40]}” is none of its choices, nor “unclear”")
            return self
        if not self.least < self.most or not 0 < self.step <= self.most - self.least or self.near < 0:
            raise ValueError("the scale has to go up, in steps that fit into it")
        for value in [case.says for case in self.right] + ([self.start] if self.start else []):
            _operand(value, info.context)
        return self


class Step(Part):
    """One thing to understand."""

    id: Annotated[str, Field(pattern="^[a-z0-9-]{1,30}$")]
    title: Title
    say: Sentences
    sets: Annotated[dict[str, Any], AfterValidator(_sets)] = Field({}, alias="set")
    """What the controls become, by the names of SETS."""
    point: Place = ""
    """A name in PLACES."""
    ask: Ask | None = None
    done: Annotated[dict[str, Any], AfterValidator(_done)] = {}
    """One of DOINGS with what belongs to it; empty where answering is all."""
    show: Annotated[list[Annotated[list[Case], _cases("say")]], Field(max_length=MOST_SHOWN)] = []
    """Of each group the first case that holds is said."""
    then: Place = ""
    """A name in PLACES: what it points at once it is done; empty for where it was done."""

    @property
    def when(self) -> Condition | None:
        """What has to hold for it to be done, where `done` is about facts."""
        return Condition(_compared(self.done["when"])) if "when" in self.done else None

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if self.ask is None and not self.done:
            raise ValueError("a step needs something to guess (“ask”) or to do (“done”)")
        for case in (case for group in self.show for case in group):
            _with_facts(case.says, info)
        return self


class Needed(TypedDict, total=False):
    """What a run has to be: its text's name, what an own text holds, its mask."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    text: Title
    holds: Choice
    causal: bool


class Lesson(Part):
    """A path of a few steps."""

    id: str
    number: int
    title: Title
    about: Annotated[str, Field(max_length=SENTENCES)]
    steps: list[Step]
    scene: Annotated[dict[str, Any], AfterValidator(_sets)] = {}
    """What the panels hold as it begins, by the names of SETS; whatever it does not name is as in a new page."""
    runs: Annotated[dict[str, Needed], AfterValidator(_runs)] = {}
    """Names of runs → what the visitor's run has to be to count as that one."""
    prompt: Choice = ""
    """What facts on a run's writing go on from; empty for the run's own."""
    group: Annotated[str, Field(max_length=TITLE)] = ""
    """Its heading in the list of lessons; empty for the main path."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not STEPS[0] <= len(self.steps) <= STEPS[1]:
            raise ValueError(f"a lesson has {STEPS[0]} to {STEPS[1]} steps, this one {len(self.steps)}")
        if len({step.id for step in self.steps}) < len(self.steps):
            raise ValueError("two steps have the same id")
        return self

    def step(self, step_id: str) -> Step | None:
        """The step of that id."""
        return next((step for step in self.steps if step.id == step_id), None)


# ---- lessons ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def all_lessons() -> tuple[Lesson, ...]:
    """The lessons that ship and those in VARIABLE's folder, by number; a file that cannot be read is left out."""
    found = {path: read_lesson(path.read_bytes(), path.stem) for path in sorted(FILES.glob("*.json"))}
    folder = os.environ.get(VARIABLE)
    taken = {lesson.id for lesson in found.values()}
    for path in sorted(Path(folder).glob("*.json"))[:MOST_LESSONS] if folder else ():
        try:
            lesson = read_lesson(path.read_bytes(), path.stem)
            if lesson.id in taken:
                raise LessonError(f"there is a lesson called “{lesson.id}” already: give the file another name")
        except (OSError, LessonError) as problem:
            print(f"{path} is left out: {problem}", file=sys.stderr)
            continue
        taken.add(lesson.id)
        found[path] = lesson
    return tuple(sorted(found.values(), key=lambda lesson: (lesson.number, lesson.id)))


def find_lesson(name: Any) -> Lesson | None:
    """The lesson of this id, or number."""
    return next((lesson for lesson in all_lessons() if str(name) in (lesson.id, str(lesson.number))), None)


def read_lesson(data: bytes | str, name: str) -> Lesson:
    """The lesson in a file's bytes; its id is the file's name. Raises LessonError."""
    if not re.fullmatch(r"[a-z0-9-]{1,40}", name):
        raise LessonError(f"a lesson's file is named by small letters, digits and “-”, not {name[:60]!r}")
    if len(data) > MOST_BYTES:
        raise LessonError(f"a lesson has at most {MOST_BYTES:,} bytes, this one {len(data):,}")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise LessonError(f"this is no JSON: {problem}") from None
    if not isinstance(values, dict):
        raise LessonError("the lesson is no object, {…}")
    runs = values.get("runs")
    try:
        return Lesson.model_validate({**values, "id": name}, context=frozenset(runs if isinstance(runs, dict) else ()))
    except ValidationError as problem:
        raise LessonError(_in_words(problem, values)) from None


def _in_words(problem: ValidationError, values: dict[str, Any]) -> str:
    """The first thing that is wrong with a file, and where."""
    error = problem.errors()[0]
    place, kind, given = error["loc"], error["type"], error["input"]
    name = next((part for part in reversed(place) if isinstance(part, str)), "")
    where = "the lesson"
    if place[:1] == ("steps",) and len(place) > 1:
        step = values["steps"][place[1]]
        where = f"step {place[1] + 1} (“{str(step.get('id', '?') if isinstance(step, dict) else '?')[:40]}”)"
        where += ", its question" * ("ask" in place[2:-1]) + ", what it shows" * ("show" in place[2:-1])
    elif place[:1] == ("runs",) and len(place) > 1:
        where = f"run “{str(place[1])[:40]}”"
    match kind:
        case "missing":
            return f"{where} has no “{name}”"
        case "extra_forbidden":
            return f"{where}: there is nothing called “{name[:40]}”"
        case "string_too_long":
            return f"{where}: “{name}” has {len(given):,} characters; at most {error['ctx']['max_length']} fit"
        case "string_pattern_mismatch":
            return f"{where}: an id is made of small letters, digits and “-”"
        case "value_error":
            return f"{where}: {error['ctx']['error']}"
        case "float_type" | "finite_number" | "less_than" | "greater_than":
            return f"{where}: “{name}” has to be a number"
    return f"{where}: “{name}” cannot be {json.dumps(given)[:60]}"
