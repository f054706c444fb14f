"""Replay: the same prompt read by the model as it was at every kept moment of its training.

M = moments, L = layers, H = heads, T = tokens.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..model import Transformer
from ..storage import Checkpoint, Snapshots
from .heads import HABITS, head_scores
from .look import Look, look

NAMED = 0.25
"""A habit appears once the head that shows it most gives it this share of its weight."""


@dataclass(frozen=True, eq=False)
class Replay:
    """How a prompt's numbers changed over a run."""

    steps: tuple[int, ...]
    """The M moments, in optimizer steps."""
    scores: dict[str, np.ndarray]
    """Habit → (M, L, H) score of every head on this prompt, as `inspection.heads` defines it; NaN if the prompt cannot
    tell."""

    def most(self, habit: str) -> tuple[float, float]:
        """First and last score of the head that shows a habit most at the end; NaN if this prompt cannot tell."""
        if np.isnan(self.scores[habit][-1]).all():
            return math.nan, math.nan
        _, _, line = _strongest(self.scores[habit])
        return float(line[0]), float(line[-1])


@dataclass(frozen=True)
class Appearance:
    """The moment at which a head took up a habit."""

    layer: int
    head: int
    before: int
    """The last kept step at which its score was below halfway."""
    after: int
    """The kept step after that: from there on it stayed above."""
    final: float
    """The head's score at the end of the run."""
    score_first: float


def replay(checkpoint: Checkpoint, ids: Sequence[int]) -> Replay:
    """Read ids (T,) at every kept moment. Raises ValueError if none was kept."""
    snapshots = snapshots_of(checkpoint)
    scores: dict[str, list[np.ndarray]] = {habit: [] for habit in HABITS}
    then = dataclasses.replace(checkpoint, model=Transformer(checkpoint.config))  # one model, moved through time
    for step in snapshots.steps:
        then.model.load_state_dict(snapshots.weights(step))
        seen = look(then, ids)
        for habit in HABITS:
            scores[habit].append(getattr(head_scores(seen), habit))
    return Replay(snapshots.steps, {habit: np.stack(each) for habit, each in scores.items()})


def look_at(checkpoint: Checkpoint, step: int, ids: Sequence[int]) -> Look:
    """Look at the ids with the model of that moment. Its weights are the kept ones, in half precision."""
    return look(dataclasses.replace(checkpoint, model=snapshots_of(checkpoint).model(step)), ids)


def snapshots_of(checkpoint: Checkpoint) -> Snapshots:
    """The run's snapshots. If there are none, raises a ValueError that says what to do instead."""
    if checkpoint.snapshots is None or len(checkpoint.snapshots.steps) < 2:
        raise ValueError(
            "this model has no snapshots of its training. Choose the shipped “Copying”, or train a small model here"
        )
    history = checkpoint.history
    if (history.finished or {}).get("reason") == "moment":  # what the run did afterwards is not this model's past
        return checkpoint.snapshots.until(history.last_step)
    return checkpoint.snapshots


def appearance(replayed: Replay, habit: str) -> Appearance | None:
    """The head that shows a habit most at the end, and when it took it up; None if it shows too little, or did before.

    It came between the two neighbouring moments where the score passed halfway from start to end for the last time.
    """
    steps, scores = replayed.steps, replayed.scores[habit]
    layer, head, line = _strongest(scores)
    if line[-1] < NAMED or line[-1] <= line[0]:
        return None
    at = int(np.flatnonzero(line < (line[0] + line[-1]) / 2)[-1]) + 1
    return Appearance(
        layer=layer,
        head=head,
        before=int(steps[at - 1]),
        after=int(steps[at]),
        final=float(line[-1]),
        score_first=float(line[0]),
    )


def most_learned(replayed: Replay) -> str | None:
    """The habit that training raised most, in the head that shows it most at the end; None if none appeared."""
    found = {habit: appeared for habit in replayed.scores if (appeared := appearance(replayed, habit)) is not None}
    return max(found, key=lambda habit: found[habit].final - found[habit].score_first, default=None)


def _strongest(scores: np.ndarray) -> tuple[int, int, np.ndarray]:
    """The layer and head with the highest final score in (M, L, H), and that head's scores (M,)."""
    final = np.nan_to_num(scores[-1])
    layer, head = (int(i) for i in np.unravel_index(int(final.argmax()), final.shape))
    return layer, head, np.nan_to_num(scores[:, layer, head])
