"""Sweeps: one setting tried with several values, each with several seeds, to see which predicts best and how surely."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..data import Corpus
from ..model import ModelConfig, Transformer
from ..training.config import TrainConfig
from ..training.events import Finished, TrainEvent
from ..training.loop import train
from ..training.verdict import mean_interval

MOST_VALUES, MOST_SEEDS, SEEDS = 12, 12, 3
"""At most; and seeds where nobody says how many."""


@dataclass(frozen=True)
class Sweep:
    """What to try. Raises ValueError where that makes no sense."""

    name: str
    """Of the setting, of the model's or of the training's."""
    values: tuple[Any, ...]
    seeds: int = SEEDS

    def __post_init__(self) -> None:
        if not 2 <= len(set(self.values)) == len(self.values) <= MOST_VALUES:
            raise ValueError(f"give 2 to {MOST_VALUES} different values of {self.name}")
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise ValueError(f"give 1 to {MOST_SEEDS} seeds, not {self.seeds:,}")
        if self.name in ("seed", "vocab_size", "device"):
            raise ValueError(f"{self.name} cannot be swept: choose a setting of the model or of its training")

    def configs(self, shape: ModelConfig, config: TrainConfig, value: Any) -> tuple[ModelConfig, TrainConfig]:
        """The two with one of the values. Raises ValueError where it does not fit."""
        if self.name in {field.name for field in fields(ModelConfig)}:
            return shape.replace(**{self.name: value}), config
        return shape, config.replace(**{self.name: value})


@dataclass(frozen=True)
class Trying:
    """An event of one of the runs."""

    value: Any
    seed: int
    event: TrainEvent
    model: Transformer


@dataclass(frozen=True)
class Row:
    """The results of one value, over all seeds."""

    value: Any
    losses: tuple[float, ...]
    """Validation losses at the end, by seed, in nats per token; NaN where a run diverged."""

    @property
    def mean(self) -> float:
        """Over the seeds; infinite where a run diverged."""
        return float(np.mean(self.losses)) if np.isfinite(self.losses).all() else math.inf

    @property
    def margin(self) -> float:
        """Half the width of the mean's 95 % interval over the seeds; infinite with one seed."""
        return float(mean_interval(np.array(self.losses))[1])


def run_sweep(
    sweep: Sweep, shape: ModelConfig, config: TrainConfig, corpus: Corpus, *,
    make: Callable[[ModelConfig, int], Transformer] = lambda shape, seed: Transformer(shape, seed=seed),
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Trying]:  # fmt: skip
    """Train all of them, one after the other, every value with the same seeds; ends early once it is stopped."""
    for value in sweep.values:
        for seed in range(config.seed, config.seed + sweep.seeds):
            shape_, config_ = sweep.configs(shape, config, value)
            model = make(shape_, seed)
            for event in train(model, corpus, config_.replace(seed=seed), should_stop=should_stop):
                yield Trying(value, seed, event, model)
            if should_stop():
                return


def add_result(rows: Sequence[Row], tried: Trying) -> list[Row]:
    """The rows with the loss of one more finished run; unchanged after any other event or a stopped run."""
    event, rows = tried.event, list(rows)
    if not isinstance(event, Finished) or event.reason == "stopped":
        return rows
    loss = math.nan if event.reason == "diverged" or event.val_loss is None else event.val_loss
    if rows and rows[-1].value == tried.value:
        return [*rows[:-1], Row(tried.value, (*rows[-1].losses, loss))]
    return [*rows, Row(tried.value, (loss,))]


def complete(rows: Sequence[Row]) -> list[Row]:
    """The rows that have all their seeds; the last one may have fewer so far."""
    most = max((len(row.losses) for row in rows), default=0)
    return [row for row in rows if len(row.losses) == most]


def best_of(rows: Sequence[Row]) -> Row | None:
    """The complete row with the lowest mean; None where every run diverged, or nothing was tried."""
    return min((row for row in complete(rows) if math.isfinite(row.mean)), key=lambda row: row.mean, default=None)


def lead_of(rows: Sequence[Row]) -> tuple[Row, float, float] | None:
    """The next best complete row, by how much its loss is higher, and half the width of the 95 % interval over the
    seeds' own differences."""
    best = best_of(rows)
    second = best_of([row for row in complete(rows) if row is not best])
    if second is None:
        return None
    return second, *behind(second, best)


def behind(row: Row, best: Row) -> tuple[float, float]:
    """By how much a complete row's loss is above the best one's, and the interval's half width; NaN if it diverged."""
    return tuple(map(float, mean_interval(np.array(row.losses) - np.array(best.losses))))
