"""A lesson file → Lesson: JSON with no code inside, held to bounds, refused in a sentence that says where and what.

docs/lessons.md says what a file may hold.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Condition:
    """Comparisons of facts with facts, numbers or words, which all have to hold."""

    parts: tuple[tuple[str, str, str], ...]
    """(left, operator, right) as they stand in the file."""


@dataclass(frozen=True)
class Case:
    """Something said, or an answer, with what has to hold for it."""

    says: str
    when: Condition | None = None


@dataclass(frozen=True)
class Ask:
    """A question, whose answer the visitor's own numbers decide."""

    question: str
    kind: str
    """choice, number or curve: of the last, the end is asked for."""
    right: tuple[Case, ...]
    """The first that holds is the answer: a choice's name, or a fact or number."""
    choices: Mapping[str, str] = field(default_factory=dict)
    least: float = 0.0
    most: float = 1.0
    step: float = 0.1
    unit: str = ""
    near: float = 0.0
    """How far off counts as right."""
    start: str = ""
    """Of a curve: the fact or number where it begins."""
    covers: tuple[str, ...] = ()
    """Names in PLACES: where the answer stands, covered until the guess."""


@dataclass(frozen=True)
class Step:
    """One thing to understand."""

    id: str
    title: str
    say: str
    sets: Mapping[str, Any] = field(default_factory=dict)
    """What the controls become, by the names of SETS."""
    point: str = ""
    """A name in PLACES."""
    ask: Ask | None = None
    done: Mapping[str, Any] = field(default_factory=dict)
    """One of DOINGS with what belongs to it; empty where answering is all."""
    when: Condition | None = None
    """What has to hold for it to be done, where `done` is about facts."""
    show: tuple[tuple[Case, ...], ...] = ()
    """Of each group the first case that holds is said."""
    then: str = ""
    """A name in PLACES: what it points at once it is done; empty for where it was done."""


@dataclass(frozen=True)
class Lesson:
    """A path of a few steps."""

    id: str
    number: int
    title: str
    about: str
    steps: tuple[Step, ...]
    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Names of runs → what the visitor's run has to be to count as that one: its text, its mask."""
    prompt: str = ""
    """What facts on a run's writing go on from; empty for the run's own."""
    group: str = ""
    """The heading in the list that it stands under; empty for the path that everybody takes."""

    def step(self, step_id: str) -> Step | None:
        """The step of that id."""
        return next((step for step in self.steps if step.id == step_id), None)


@lru_cache(maxsize=1)
def all_lessons() -> tuple[Lesson, ...]:
    """The lessons that ship, and those of the folder that VARIABLE names, by number. A teacher's file that cannot be
    read is left out, and said on the terminal why."""
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
    given = _Table(values, "the lesson")
    runs = {
        run: _run(_Table(needed, f"run “{run}”"))
        for run, needed in _Table(given.take("runs", dict, {}), "runs").items()
    }
    for run in runs:
        if not re.fullmatch(r"[a-z]{1,20}", run) or run == "chosen":
            raise LessonError(f"a run is named by small letters, and not “chosen”; this one is “{run[:40]}”")
    listed = given.take("steps", list)
    if not STEPS[0] <= len(listed) <= STEPS[1]:
        raise LessonError(f"a lesson has {STEPS[0]} to {STEPS[1]} steps, this one {len(listed)}")
    steps = tuple(_step(_Table(step, f"step {i}"), frozenset(runs)) for i, step in enumerate(listed, 1))
    ids = [step.id for step in steps]
    if len(set(ids)) < len(ids):
        raise LessonError("two steps have the same id")
    number = given.take("number", int)
    lesson = Lesson(
        name, number, given.words("title", TITLE), given.words("about", SENTENCES), steps, runs,
        given.words("prompt", CHOICE, ""), given.words("group", TITLE, ""),
    )  # fmt: skip
    given.is_empty()
    return lesson


# ---- the parts of a file ---------------------------------------------------------------------------------------------


class _Table:
    """An object of a file: what is taken out of it has to be there and fit; in the end nothing may be left."""

    def __init__(self, values: Any, where: str):
        if not isinstance(values, dict):
            raise LessonError(f"{where} is no object, {{…}}")
        self.values, self.where = dict(values), where

    def take(self, name: str, kind: type | tuple[type, ...], otherwise: Any = None) -> Any:
        """The value of this name; without a default it has to be there."""
        value = self.values.pop(name, otherwise)
        if value is None:
            raise LessonError(f"{self.where} has no “{name}”")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise LessonError(f"{self.where}: “{name}” cannot be {json.dumps(value)[:60]}")
        return value

    def number(self, name: str, otherwise: float | None = None) -> float:
        value = self.take(name, (int, float), otherwise)
        if isinstance(value, bool) or not abs(value) < 1e12:
            raise LessonError(f"{self.where}: “{name}” has to be a number")
        return float(value)

    def words(self, name: str, most: int, otherwise: str | None = None) -> str:
        words = self.take(name, str, otherwise)
        if len(words) > most:
            raise LessonError(f"{self.where}: “{name}” has {len(words):,} characters; at most {most:,} fit")
        return words

    def items(self):
        return self.values.items()

    def is_empty(self) -> None:
        if self.values:
            raise LessonError(f"{self.where}: there is nothing called “{next(iter(self.values))}”")


def _run(given: _Table) -> dict[str, Any]:
    """What a run has to be: its text's name, what an own text holds, its mask."""
    needed: dict[str, Any] = {}
    if "text" in given.values:
        needed["text"] = given.words("text", TITLE)
    if "holds" in given.values:
        needed["holds"] = given.words("holds", CHOICE)
    if "causal" in given.values:
        needed["causal"] = given.take("causal", bool)
    given.is_empty()
    return needed


def _step(given: _Table, runs: frozenset[str]) -> Step:
    where = given.where = f"{given.where} (“{str(given.values.get('id', '?'))[:40]}”)"
    step_id = given.take("id", str)
    if not re.fullmatch(r"[a-z0-9-]{1,30}", step_id):
        raise LessonError(f"{where}: an id is made of small letters, digits and “-”")
    point, then = (given.take(name, str, "") for name in ("point", "then"))
    for place in filter(None, (point, then)):
        if place not in PLACES:
            raise LessonError(f"{where}: there is no place called “{place[:40]}”; there are {', '.join(PLACES)}")
    sets = _sets(given.take("set", dict, {}), where)
    asked = given.values.pop("ask", None)
    ask = None if asked is None else _ask(_Table(asked, f"{where}, its question"), runs)
    done, when = _done(given.take("done", dict, {}), where, runs)
    if ask is None and not done:
        raise LessonError(f"{where}: a step needs something to guess (“ask”) or to do (“done”)")
    shown = given.take("show", list, [])
    if len(shown) > MOST_SHOWN:
        raise LessonError(f"{where}: at most {MOST_SHOWN} sentences are shown, not {len(shown)}")
    show = tuple(_cases(said, f"{where}, what it shows", "say", runs) for said in shown)
    for group in show:
        for case in group:
            _check_facts(case.says, where, runs)
    title, say = given.words("title", TITLE), given.words("say", SENTENCES)
    step = Step(step_id, title, say, sets, point, ask, done, when, show, then)
    for words in (step.say, ask.question if ask else ""):
        _check_facts(words, where, runs)
    given.is_empty()
    return step


def _sets(sets: dict, where: str) -> dict[str, Any]:
    for name, value in sets.items():
        if name not in SETS:
            raise LessonError(f"{where}: there is no control called “{name[:40]}” to set; there are {', '.join(SETS)}")
        if name == "train.text" and isinstance(value, list):
            sets[name] = value = "\n".join(map(str, value))
        if name == "model" and isinstance(value, list):
            if not 1 <= len(value) <= 4 or not all(isinstance(model, str) for model in value):
                raise LessonError(f"{where}: “model” is one name, or up to four to take the first of that is there")
            continue
        if not isinstance(value, (str, int, float, bool)):
            raise LessonError(f"{where}: “{name}” can be set to words, a number, true or false only")
        known = {"tab": TABS, "view": VIEWS}.get(name)
        if known and value not in known:
            raise LessonError(f"{where}: “{name}” has to be one of {', '.join(known)}")
    return sets


def _ask(given: _Table, runs: frozenset[str]) -> Ask:
    kinds = [kind for kind in ("choices", "number", "curve") if kind in given.values]
    if len(kinds) != 1:
        raise LessonError(f"{given.where} needs one of “choices”, “number” and “curve”")
    kind, question = kinds[0], given.words("question", SENTENCES)
    covers = tuple(map(str, given.take("covers", list, [])))
    for place in covers:
        if place not in PLACES:
            raise LessonError(f"{given.where}: there is no place called “{place[:40]}” to cover")
    right = _cases(given.take("right", (str, int, float, list)), given.where, "is", runs)
    if kind == "choices":
        choices = given.take("choices", dict)
        if not 2 <= len(choices) <= 6 or not all(isinstance(c, str) and len(c) <= CHOICE for c in choices.values()):
            raise LessonError(f"{given.where}: two to six choices, of at most {CHOICE} characters each")
        for case in right:
            if case.says not in choices and case.says != "unclear" and not is_fact(case.says, runs):
                raise LessonError(f"{given.where}: “{case.says[:40]}” is none of its choices, nor “unclear”")
        given.is_empty()
        return Ask(question, "choice", right, choices=choices, covers=covers)
    scale = _Table(given.take(kind, dict), f"{given.where}, its scale")
    ask = Ask(
        question,
        kind,
        right,
        least=scale.number("least"),
        most=scale.number("most"),
        step=scale.number("step"),
        unit=scale.words("unit", 30, ""),
        near=scale.number("near", 0.0),
        start=str(scale.take("start", (str, int, float))) if kind == "curve" else "",
        covers=covers,
    )
    if not ask.least < ask.most or not 0 < ask.step <= ask.most - ask.least or ask.near < 0:
        raise LessonError(f"{given.where}: the scale has to go up, in steps that fit into it")
    for value in [case.says for case in right] + ([ask.start] if ask.start else []):
        _operand(value, given.where, runs, number=True)
    scale.is_empty()
    given.is_empty()
    return ask


def _done(done: dict, where: str, runs: frozenset[str]) -> tuple[dict[str, Any], Condition | None]:
    if not done:
        return {}, None
    kinds = [kind for kind in DOINGS if kind in done]
    if len(kinds) != 1:
        raise LessonError(f"{where}: “done” needs one of {', '.join(DOINGS)}")
    kind, value, rest = kinds[0], done[kinds[0]], done.keys() - {kinds[0]}
    if kind in ("run", "pair", "balance"):
        allowed = {"of"} if kind == "run" else set()
        if value not in ("begun", "finished"):
            raise LessonError(f"{where}: a {kind} can be “begun” or “finished”")
        if done.get("of", "run") not in (*runs, "run"):
            raise LessonError(f"{where}: there is no run called “{done['of']}”; “runs” has to name it")
    elif kind == "when":
        allowed = set()
        if rest:
            raise LessonError(f"{where}: “when” stands alone in “done”")
        return {"when": value}, _condition(value, where, runs)
    elif kind == "control":
        allowed = {"is"}
        if value not in WATCHED:
            known = ", ".join(WATCHED)
            raise LessonError(f"{where}: no step can wait for a control “{str(value)[:40]}”; only for {known}")
        if not isinstance(done.get("is", ""), (str, int, float, bool)):
            raise LessonError(f"{where}: “is” has to be words, a number, true or false")
    else:
        allowed = {"times"} if kind == "pressed" else set()
        if value not in PLACES:
            raise LessonError(f"{where}: there is no place called “{str(value)[:40]}”; there are {', '.join(PLACES)}")
        times = done.get("times", 1)
        if not isinstance(times, int) or not 1 <= times <= 9:
            raise LessonError(f"{where}: “times” is a whole number from 1 to 9")
    if rest - allowed:
        raise LessonError(f"{where}: “done” has nothing called “{sorted(rest - allowed)[0]}” beside “{kind}”")
    return done, None


def _cases(given: Any, where: str, says: str, runs: frozenset[str]) -> tuple[Case, ...]:
    """A value, or a list of cases of which the first that holds counts."""
    if not isinstance(given, list):
        given = [given if isinstance(given, dict) else {says: given}]
    if not 1 <= len(given) <= 8:
        raise LessonError(f"{where}: one to eight cases")
    cases = []
    for case in given:
        table = _Table(case, where)
        words = table.take(says, (str, int, float))
        when = _condition(table.take("when", str), where, runs) if "when" in table.values else None
        table.is_empty()
        if isinstance(words, str) and len(words) > SENTENCES:
            raise LessonError(f"{where}: a sentence has at most {SENTENCES} characters")
        cases.append(Case(str(words), when))
    return tuple(cases)


_COMPARED = re.compile(r"\s*(\S+)\s+(<=|>=|<|>|is not|is)\s+(\S+)\s*")


def _condition(words: Any, where: str, runs: frozenset[str]) -> Condition:
    """`loss < bigram and gap > 0.1`: facts, numbers and words, compared."""
    parts = []
    for part in str(words).split(" and "):
        found = _COMPARED.fullmatch(part)
        if found is None:
            raise LessonError(f"{where}: “{part[:60]}” is no comparison such as “loss < 2” or “winner is dense”")
        left, how, right = found.groups()
        if not is_fact(left, runs):
            raise LessonError(f"{where}: there is no fact called “{left[:40]}”; there are {', '.join(FACTS)}")
        if how not in ("is", "is not"):
            _operand(right, where, runs, number=True)
        parts.append((left, how, right))
    return Condition(tuple(parts))


def _operand(value: str, where: str, runs: Sequence[str] | frozenset[str], *, number: bool) -> None:
    if is_fact(value, runs):
        return
    try:
        float(value)
    except ValueError:
        raise LessonError(
            f"{where}: “{value[:40]}” is neither a number nor a fact; there are {', '.join(FACTS)}"
        ) from None


def _check_facts(words: str, where: str, runs: frozenset[str]) -> None:
    """Every {…} in the words is a fact."""
    for name in re.findall(r"\{([^{}]*)\}", words):
        if not is_fact(name, runs):
            raise LessonError(f"{where}: there is no fact called “{name[:40]}”; there are {', '.join(FACTS)}")
    if re.sub(r"\{[^{}]*\}", "", words).count("{"):
        raise LessonError(f"{where}: a “{{” that is not closed")
