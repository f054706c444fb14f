"""A checkpoint in memory: a model with all that belongs to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from ..data.tokenizers import Tokenizer
from ..model import ModelConfig, Transformer
from ..training.history import History
from .errors import CheckpointError
from .snapshots import Snapshots


@dataclass(frozen=True)
class Checkpoint:
    """A model with all that belongs to it."""

    model: Transformer
    tokenizer: Tokenizer
    history: History
    name: str = "model"
    """What to call it."""
    about: dict[str, Any] = field(default_factory=dict)
    """How it was made: corpus, ladder, training settings, prompt. Plain values, any of them may be missing."""
    snapshots: Snapshots | None = None
    """The weights at many moments of the run, where they were kept."""

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.model.config

    @property
    def best(self) -> tuple[int, float] | None:
        """(step, validation loss) of kept weights that are better than the model's own; None where there are none."""
        lowest, kept = self.history.best, self.snapshots.best if self.snapshots else None
        if kept is None or lowest is None or kept >= self.history.last_step:
            return None
        losses = dict(zip(self.history.evaluations["step"], self.history.evaluations["val_loss"]))
        # files hold six digits, and a run that was killed may have kept what it did not come to tell
        return (kept, losses[kept]) if abs(losses.get(kept, math.inf) - lowest[1]) < 1e-4 else None

    def at(self, step: int | str) -> Checkpoint:
        """The same as it was after a step whose weights were kept, or after the "best"; its record ends there.

        Raises CheckpointError that names the steps there are.
        """
        last = self.history.last_step
        if step == "best":
            step = self.best[0] if self.best else last
        if step == last:
            return self
        if self.snapshots is None or step not in self.snapshots.steps:
            kept = ", ".join(f"{kept:,}" for kept in (self.snapshots.steps if self.snapshots else ()))
            others = (
                f": there are those of {kept} and of the last, {last:,}" if kept else f", only after the last, {last:,}"
            )
            raise CheckpointError(f"no weights were kept after step {step:,}{others}")
        history = self.history.until(step)
        message = f"These are the weights of step {step:,} of {last:,}."
        history.finished = {"event": "finished", "step": step, "reason": "moment", "message": message}
        return replace(self, model=self.snapshots.model(step), history=history, snapshots=None)
