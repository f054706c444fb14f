"""The loss curve with its ladder: how far the model has come, and how far there is to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Run:
    """One run's curves, in the columns of `training.History`."""

    name: str
    steps: Mapping[str, Sequence[float]]
    """Columns `step`, `loss`, `seconds`, …: one entry per optimizer step."""
    evaluations: Mapping[str, Sequence[float]]
    """Columns `step`, `train_loss`, `val_loss`, `seconds`."""
    kind: str = "dense"
    """dense or moe: picks the colour."""
    recorded: bool = False
    """True for a run that happened earlier and ships with the project: the chart says so."""


def loss_curve(
    run: Run | None,
    rungs: Sequence[tuple[str, float]] = (),
    others: Sequence[Run] = (),
    *,
    planned_steps: int | None = None,
    x: str = "step",
    log_x: bool = False,
    height: int = 360,
) -> dict[str, Any]:
    """Batch loss (thin), training and validation loss of `run`, the validation curves of `others`, and the ladder.

    Args:
        run: the current run; None draws the empty axes with the ladder.
        rungs: (name, nats per token) from worst to best, as `Ladder.rungs()` gives them.
        planned_steps: fixes the end of the step axis and how batch losses are thinned (to about 400 bucket means),
            so that a growing run only ever appends points.
        x: the column drawn along the bottom, `step` or `seconds`.
    """
    raise NotImplementedError


def describe_loss(run: Run | None, rungs: Sequence[tuple[str, float]] = ()) -> str:
    """Where the validation loss stands on the ladder and whether it still falls, in one or two sentences."""
    raise NotImplementedError
