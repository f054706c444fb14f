"""Pace: how long a run will take here, judged by the last ones."""

from __future__ import annotations

from ..data.corpus import VALIDATION_SHARE
from ..devices import processors
from ..engine.request import default_slide
from ..model import ModelConfig
from ..training import TrainConfig
from .views import RunView

OVERHEAD = 0.006  # seconds per step that do not grow with the model
FIRST_RATE = 3.0e10  # floating-point operations per second of one processor, until a run has shown the true figure
MOST_PROCESSORS = 4  # more processors do not make steps this small quicker
PER_TOKEN = 1.6e-4  # seconds that a layer, however small, takes for one token of a sample
MOST_FACTOR = 10.0  # a run further off its estimate met an accident, such as a machine that slept


class Pace:
    """An estimate of this machine's speed, improved by every run: for steps, and for what comes between them."""

    def __init__(self) -> None:
        self._rate = FIRST_RATE * min(processors(), MOST_PROCESSORS)
        self._longer = 1.0  # than estimated: evaluations and samples
        self.guesses = True
        """Whether no run has yet shown how fast this machine is."""

    def seconds(self, config: ModelConfig, training: TrainConfig, tokens: int = 0) -> float:
        """About how long a run takes, with evaluations and samples, on a text of this many tokens (0: a long one)."""
        step = OVERHEAD + _work(config, training) / self._rate
        return training.steps * step + self._longer * _between(config, training, tokens, self._rate)

    def learn(self, view: RunView, training: TrainConfig, tokens: int = 0) -> None:
        """Take in how fast a finished run was."""
        config, finished, steps = view.config, view.history.finished, view.history.steps
        speeds = [speed for speed in steps["tokens_per_second"] if speed > 0]
        speeds = speeds[1:] or speeds  # the first step also got everything ready
        if config is None or finished is None or not speeds:
            return
        in_step = training.batch_size * training.accumulation * config.context_length
        step = in_step * sum(1 / speed for speed in speeds) / len(speeds)
        shown = min(max(_work(config, training) / max(step - OVERHEAD, 1e-4), 1e9), 1e15)
        self._rate = self._mixed(self._rate, shown)
        took = finished["seconds"] - step * len(steps["step"])
        longer = took / _between(config, training.replace(steps=view.history.last_step), tokens, shown)
        self._longer = self._mixed(self._longer, min(max(longer, 1 / MOST_FACTOR), MOST_FACTOR))
        self.guesses = False

    def _mixed(self, known: float, shown: float) -> float:
        return shown if self.guesses else 0.5 * known + 0.5 * shown


def _work(config: ModelConfig, training: TrainConfig) -> float:
    """Floating-point operations in a step."""
    windows = training.batch_size * training.accumulation
    return windows * config.context_length * config.flops_per_token(training=True)


def _times(steps: int, every: int) -> int:
    """How often something happens that is due every `every` steps, before the first, and after the last."""
    return 1 - (-steps // every) if every else 0


def _between(config: ModelConfig, training: TrainConfig, tokens: int, rate: float) -> float:
    """Seconds for a run's evaluations of both parts of a text and its samples, at this many operations per second."""
    context, forward = config.context_length, config.flops_per_token() / rate
    windows = training.eval_windows or 128
    parts = (tokens * (1 - VALIDATION_SHARE), tokens * VALIDATION_SHARE) if tokens else (float("inf"),) * 2
    scored = sum(min(windows * context, part) for part in parts)
    # whenever the context is full, what remains after the slide is read anew
    written, slide = training.sample_tokens, default_slide(context)
    slides = -(-max(training.sample_tokens - context, 0) // slide)
    writing = written * config.n_layers * PER_TOKEN + (written + slides * (context - slide)) * forward
    evaluations = max(_times(training.steps, training.eval_every), 1)
    return evaluations * (OVERHEAD + scored * forward) + _times(training.steps, training.sample_every) * writing
