"""Repetition: whether a run reached the losses on the card that it repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .card import RunCard


@dataclass(frozen=True)
class Gap:
    """A loss that differs from the card's."""

    step: int
    split: str
    """training or validation."""
    loss: float
    expected: float


@dataclass(frozen=True)
class Repetition:
    """How a repeated run compares with its card, to four decimals."""

    kind: str
    """matched, differs, or open (nothing to compare yet, or more to come)."""
    over: bool
    """Whether no more evaluations will come."""
    compared: tuple[tuple[int, float, float], ...]
    """(step, training loss, validation loss) from the card, for steps where this run was evaluated, too."""
    missing: int
    """How many of the card's losses are at other steps."""
    ended_early: bool
    """Whether all of those steps are after the run's last evaluation."""
    gaps: tuple[Gap, ...]
    """The losses that differ from the card's, in the order of steps."""
    theirs: str
    """The kind of machine that gave the card's losses; "" if the card does not say."""
    mine: str
    """The kind of machine that trains this run."""


def repetition(card: RunCard, evaluations: Mapping[str, Sequence[float]], machine: str, *, over: bool) -> Repetition:
    """Compare the losses on a card with the evaluations of a run with the same text and settings.

    Args:
        evaluations: columns of `training.History.evaluations`.
        machine: the kind of machine it runs on.
        over: whether no more evaluations will come.
    """
    found = {
        int(step): (train, val)
        for step, train, val in zip(evaluations["step"], evaluations["train_loss"], evaluations["val_loss"])
    }
    compared = tuple(row for row in card.losses if row[0] in found)
    missing = [row[0] for row in card.losses if row[0] not in found]
    gaps = tuple(
        Gap(step, split, loss, expected)
        for step, *pair in compared
        for split, expected, loss in zip(("training", "validation"), pair, found[step])
        if f"{loss:.4f}" != f"{expected:.4f}"
    )
    kind = "differs" if gaps else "matched" if compared and (over or not missing) else "open"
    early = bool(found and missing) and max(found) < min(missing)
    return Repetition(kind, over, compared, len(missing), early, gaps, card.machine, machine)
