"""Members: a class, its students and their runs, as the server remembers them: nothing identifies a browser."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from pydantic import TypeAdapter

from ...links import LinkError, RunCard
from ..cards import card_of, spec_of
from ..limits import CURVE_POINTS, MODEL_SENTENCE
from ..run_job import RunJob
from ..runs import RunSpec
from .codes import one_line


@dataclass(frozen=True)
class Report:
    """One run, as of its last measurement."""

    text: str
    """The page's name for the text."""
    text_key: str
    """Equal for runs whose losses may be compared."""
    seed: int
    step: int
    planned: int
    state: str
    """training, finished or cut (ended before its last step)."""
    loss: float | None
    """The last validation loss in nats per token; None if there is none yet, or it is not a number."""
    rungs: tuple[tuple[str, float], ...]
    """The baselines, once they are known."""
    curve: tuple[tuple[int, float], ...]
    """(step, validation loss)."""
    said: str
    """The beginning of its last sample."""
    n_parameters: int
    repeatable: bool
    """Whether its settings alone determine its losses."""
    causal: bool = True
    """Whether its model has a mask; without one, it sees the tokens it should predict."""

    @property
    def floor(self) -> float | None:
        """The exact floor, if its text has one."""
        return dict(self.rungs).get("floor")

    @property
    def above(self) -> float | None:
        """The loss above the floor, in nats."""
        return None if self.loss is None or self.floor is None else self.loss - self.floor

    @property
    def complete(self) -> bool:
        """Whether the run reached its last planned step."""
        return self.state == "finished" and self.loss is not None


IN_FILE = TypeAdapter(Report)
"""The report as JSON, as stored."""


@dataclass(frozen=True)
class Klass:
    """A teacher's class: its code, lesson, run and end."""

    id: int
    code: str
    title: str
    lesson: str
    """The lesson that the class does; empty for none."""
    letters: str
    """The card of the run to which everybody's controls are set; empty for none."""
    text: str
    """The run's own text, if it learns from one."""
    changes: str
    """One of CHANGES."""
    made: float
    ends: float
    version: int
    """Grows with every change to what a board shows."""
    ended: bool

    def spec(self, number: int = 0) -> RunSpec | None:
        """The run to which the controls of the student with this number are set; None if the class has none."""
        card = card_from(self.letters)
        if card is None:
            return None
        spec = spec_of(card, self.text)
        own = spec.training.seed + (number if self.changes == "seed" else 0)
        return replace(spec, training=spec.training.replace(seed=own))


@lru_cache(maxsize=1000)
def card_from(letters: str) -> RunCard | None:
    """A card written by a run on this server; None if there is none, or if another version wrote it."""
    try:
        return RunCard.from_letters(letters) if letters else None
    except LinkError:
        return None


@dataclass(frozen=True)
class Member:
    """One student, as the student's own page knows it."""

    klass: Klass
    id: int
    number: int
    name: str


@dataclass(frozen=True)
class Run:
    """A student's run, the time of its last report, and the letters of its card (empty if it has none)."""

    letters: str
    report: Report
    at: float


@dataclass(frozen=True)
class Student:
    """One student, as the board knows it."""

    id: int
    number: int
    """In the order of joining, from 1."""
    name: str
    joined: float
    lesson: str
    step: int
    steps: int
    runs: tuple[Run, ...]
    """The student's runs, the oldest first."""

    @property
    def latest(self) -> Run | None:
        """The most recently reported run."""
        return self.runs[-1] if self.runs else None


def report(job: RunJob) -> tuple[str, Report] | None:
    """The letters of a run's card (empty if it has none), and its report; None before it began."""
    view, spec = job.view(), job.spec
    if view.config is None:
        return None
    history, training, config = view.history, spec.training, view.config
    evaluations = [
        (int(step), round(float(loss), 6))
        for step, loss in zip(history.evaluations["step"], history.evaluations["val_loss"])
        if math.isfinite(loss)
    ]
    loss = history.val_loss
    over = view.state == "finished"
    sample = history.samples[-1] if history.samples else None
    try:
        letters = card_of(view, spec).to_letters()
    except LinkError:
        letters = ""
    return letters, Report(
        text=spec.source.title[:80],
        text_key=view.corpus_key,
        seed=training.seed,
        step=history.last_step,
        planned=training.steps,
        state="training" if not over else "finished" if history.last_step >= training.steps else "cut",
        loss=loss if loss is not None and math.isfinite(loss) else None,
        rungs=tuple((name, round(value, 6)) for name, value in view.baselines.losses()) if view.baselines else (),
        curve=_thinned(evaluations),
        # U+FFFD stands for bytes that do not make a character
        said=one_line((sample["prompt"] + sample["text"]).replace("\ufffd", " "), MODEL_SENTENCE) if sample else "",
        n_parameters=config.n_parameters,
        repeatable=not view.lengthened and job.used is None,
        causal=config.causal,
    )


def _thinned(points: list[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    if len(points) <= CURVE_POINTS:
        return tuple(points)
    return tuple(points[round(i * (len(points) - 1) / (CURVE_POINTS - 1))] for i in range(CURVE_POINTS))
