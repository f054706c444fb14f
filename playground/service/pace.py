"""Pace: how long a run will take here, from how long the last ones took."""

from __future__ import annotations

from ..devices import processors
from ..model import ModelConfig
from ..training import TrainConfig
from .views import RunView

OVERHEAD = 0.006  # seconds of a step that do not grow with the model
FIRST_RATE = 3.0e10  # floating-point operations per second of one processor, until a run has shown what is true
MOST_PROCESSORS = 4  # more do not make steps this small quicker


class Pace:
    """A guess of this machine's speed that every run improves."""

    def __init__(self) -> None:
        self._rate = FIRST_RATE * min(processors(), MOST_PROCESSORS)
        self.guesses = True
        """Whether no run has shown yet how fast this machine is."""

    def seconds(self, config: ModelConfig, training: TrainConfig) -> float:
        """About how long a run takes."""
        tokens = training.batch_size * training.accumulation * config.context_length
        return training.steps * (OVERHEAD + tokens * config.flops_per_token(training=True) / self._rate)

    def learn(self, view: RunView, training: TrainConfig) -> None:
        """Take in how fast a finished run was."""
        if view.latest is None or view.config is None or view.latest.tokens_per_second <= 0:
            return
        tokens = training.batch_size * view.config.context_length
        working = max(tokens / view.latest.tokens_per_second - OVERHEAD, 1e-4)
        measured = tokens * view.config.flops_per_token(training=True) / working
        shown = min(max(measured, 1e9), 1e15)
        self._rate, self.guesses = shown if self.guesses else 0.5 * self._rate + 0.5 * shown, False
