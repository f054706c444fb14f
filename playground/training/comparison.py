"""Comparison: train a dense model and a mixture of experts on the same batches, step by step in turns, and judge them.

`compare(plan, corpus)` yields what happens, as `train` does for one model. The turns make the seconds of both fair on a
machine whose speed drifts; the seed makes their batches equal; several seeds tell luck from difference.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..data import Corpus
from ..model import ModelConfig, Transformer
from .config import TrainConfig
from .events import Finished, Stepped, TrainEvent
from .loop import train
from .losses import WindowLosses, window_losses
from .verdict import Verdict, judge

SIDES = ("dense", "moe")
CALIBRATION_STEPS = 12
MOST_STEPS_APART = 20


@dataclass(frozen=True)
class PairPlan:
    """What is compared with what. Both sides share everything that is not said to differ."""

    dense: ModelConfig
    """The model without experts."""
    moe: ModelConfig
    """The model with experts."""
    training: TrainConfig
    """Of both. The seed also draws the first weights; further seeds count up from it."""
    seeds: int = 1
    """How many pairs are trained, one after the other."""
    equal_seconds: bool = False
    """Give both the same time instead of the same steps: each step is timed first, then the dense model's number of
    steps is set so that it takes as long as the mixture's, and its schedule is stretched with it."""

    def __post_init__(self) -> None:
        if self.dense.n_experts or not self.moe.n_experts:
            raise ValueError("a comparison needs one model without experts and one with at least two")
        if self.dense.context_length != self.moe.context_length:
            raise ValueError("both models must see equally much: give them the same context")
        if not isinstance(self.seeds, int) or isinstance(self.seeds, bool) or self.seeds < 1:
            raise ValueError(f"seeds must be a whole number of at least 1, not {self.seeds!r}")

    def config(self, side: str) -> ModelConfig:
        """The model of this side."""
        return self.dense if side == "dense" else self.moe


@dataclass(frozen=True)
class SideEvent:
    """Something happened to one of the two: an event of its own training."""

    seed: int
    side: str
    """dense or moe."""
    event: TrainEvent


@dataclass(frozen=True)
class Calibrated:
    """For equal seconds: how long a step takes, and how many steps each side gets."""

    seconds_per_step: dict[str, float]
    steps: dict[str, int]


@dataclass(frozen=True)
class Trained:
    """One of the two is done (or was stopped), and this is what it loses on the validation windows."""

    seed: int
    side: str
    model: Transformer
    losses: WindowLosses
    reason: str
    """As in `Finished`: done, stopped, time or diverged."""


@dataclass(frozen=True)
class PairsJudged:
    """Another pair is complete: the verdict on all of them so far."""

    verdict: Verdict


ComparisonEvent = SideEvent | Calibrated | Trained | PairsJudged


def compare(
    plan: PairPlan, corpus: Corpus, *, should_stop: Callable[[str], bool] = lambda side: False
) -> Iterator[ComparisonEvent]:
    """Train the pairs of `plan` on `corpus` and judge them.

    `should_stop(side)` is asked after every step of a side: stopping one lets the other go on to its end, and no
    further pair begins. Only pairs of which both did all their steps are judged. Raises ValueError before the first
    event where models, corpus and settings do not fit together.
    """
    steps = dict.fromkeys(SIDES, plan.training.steps)
    if plan.equal_seconds:
        calibrated = calibrate(plan, corpus)
        yield calibrated
        steps = calibrated.steps
    complete: dict[str, list[WindowLosses]] = {side: [] for side in SIDES}
    windows = corpus.windows("val", plan.dense.context_length, plan.training.eval_windows)
    for seed in range(plan.training.seed, plan.training.seed + plan.seeds):
        models, runs = {}, {}
        for side in SIDES:
            training = plan.training.replace(seed=seed, steps=steps[side], patience=0)  # both to the end
            models[side] = Transformer(plan.config(side), seed=seed)
            runs[side] = train(models[side], corpus, training, should_stop=lambda side=side: should_stop(side))
        done: dict[str, Trained] = {}
        for side, event in _in_turns(runs, steps):
            yield SideEvent(seed, side, event)
            if isinstance(event, Finished):
                losses = window_losses(models[side], *windows)
                done[side] = Trained(seed, side, models[side], losses, event.reason)
                yield done[side]
        if any(done[side].reason != "done" for side in SIDES):
            return
        for side in SIDES:
            complete[side].append(done[side].losses)
        yield PairsJudged(judge(complete["dense"], complete["moe"]))


def calibrate(plan: PairPlan, corpus: Corpus) -> Calibrated:
    """Time some steps of both in turns, on models that are thrown away, and share the mixture's time out."""
    training = plan.training.replace(
        steps=10**6, eval_every=0, eval_windows=1, sample_every=0, snapshots=0, patience=0, max_seconds=None
    )
    runs = {side: train(Transformer(plan.config(side)), corpus, training) for side in SIDES}
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    before = dict.fromkeys(SIDES, 0.0)
    for side, event in _in_turns(runs, dict.fromkeys(SIDES, training.steps)):
        if isinstance(event, Stepped):
            times[side].append(event.seconds - before[side])
            before[side] = event.seconds
        if all(len(taken) >= CALIBRATION_STEPS for taken in times.values()):
            break
    for run in runs.values():
        run.close()
    seconds = {side: statistics.median(times[side][2:]) for side in SIDES}  # the first ones warm up
    ratio = min(max(seconds["moe"] / seconds["dense"], 1 / MOST_STEPS_APART), MOST_STEPS_APART)
    return Calibrated(seconds, {"dense": max(round(plan.training.steps * ratio), 1), "moe": plan.training.steps})


def _in_turns(runs: dict[str, Iterator[TrainEvent]], steps: dict[str, int]) -> Iterator[tuple[str, TrainEvent]]:
    """Events of both, a step at a time, always of the one that has come less far on its own way."""
    going, progress = dict(runs), dict.fromkeys(runs, -1.0)
    while going:
        side = min(going, key=progress.__getitem__)
        for event in going[side]:
            yield side, event
            if isinstance(event, Stepped):
                progress[side] = event.step / steps[side]
                break
        else:
            del going[side]
