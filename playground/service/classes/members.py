"""Members: a class, its students and their runs, as the house remembers them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...links import RunCard
from ..cards import spec_of
from ..runs import RunSpec
from .reports import Report


@dataclass(frozen=True)
class Klass:
    """One class."""

    id: int
    code: str
    title: str
    lesson: str
    """The lesson that it does; empty for none."""
    letters: str
    """The card of the run that everybody's controls are set to; empty for none."""
    text: str
    """The run's own text, where it learns from one."""
    changes: str
    """One of CHANGES."""
    made: float
    ends: float
    version: int
    """Grows with everything that a board shows."""
    ended: bool

    @property
    def card(self) -> RunCard | None:
        """The run's card. Raises LinkError where another version of the page made it."""
        return RunCard.from_letters(self.letters) if self.letters else None

    def spec(self, number: int = 0) -> RunSpec | None:
        """The run that the controls of the student with this number are set to."""
        if self.card is None:
            return None
        spec = spec_of(self.card, self.text)
        own = spec.training.seed + (number if self.changes == "seed" else 0)
        return replace(spec, training=spec.training.replace(seed=own))


@dataclass(frozen=True)
class Member:
    """One student, as the student's own page knows it."""

    klass: Klass
    id: int
    number: int
    name: str


@dataclass(frozen=True)
class Run:
    """A student's run, when it was last heard of, and the letters of its card (empty where it has none)."""

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
    """The oldest first."""

    @property
    def latest(self) -> Run | None:
        """The run heard of last."""
        return self.runs[-1] if self.runs else None
