"""Comparison: train a dense model and a mixture of experts on the same batches, step by step in turns, and judge them.

`compare(plan, corpus)` yields what happens, as `train` does for one model. The turns make the seconds of both fair on a
machine whose speed drifts; the seed makes their batches equal; several seeds tell luck from difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from ..data import Corpus
from ..model import ModelConfig, Transformer
from .config import TrainConfig
from .events import Finished, Stepped, TrainEvent
from .loop import train
from .losses import WindowLosses, window_losses
from .verdict import Verdict, judge

SIDES = ("dense", "moe")


@dataclass(frozen=True)
class PairPlan:
    """The two models to compare. Everything not named here is the same for both."""

    dense: ModelConfig
    """The model without experts."""
    moe: ModelConfig
    """The model with experts."""
    training: TrainConfig
    """Settings for both. The seed also draws the first weights; further seeds count up from it."""
    seeds: int = 1
    """How many pairs are trained, one after the other."""

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
    """An event from the training of one of the two models."""

    seed: int
    side: str
    """dense or moe."""
    event: TrainEvent


@dataclass(frozen=True)
class Trained:
    """One of the two is done (or was stopped); holds its losses on the validation windows."""

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


ComparisonEvent = SideEvent | Trained | PairsJudged


def compare(
    plan: PairPlan,
    corpus: Corpus,
    *,
    should_stop: Callable[[str], bool] = lambda side: False,
) -> Iterator[ComparisonEvent]:
    """Train the pairs of `plan` on `corpus` and judge them.

    `should_stop(side)` is called after every step of a side. If it stops one side, the other continues to its end, and
    no further pair begins. A pair is judged only if both sides did all their steps. Raises ValueError before the first
    event if models, corpus and settings do not fit together.
    """
    complete: dict[str, list[WindowLosses]] = {side: [] for side in SIDES}
    windows = corpus.windows("val", plan.dense.context_length, plan.training.eval_windows)
    for seed in range(plan.training.seed, plan.training.seed + plan.seeds):
        models, runs = {}, {}
        for side in SIDES:
            training = plan.training.replace(seed=seed, patience=0)  # both to the end
            models[side] = Transformer(plan.config(side), seed=seed)
            runs[side] = train(models[side], corpus, training, should_stop=partial(should_stop, side))
        done: dict[str, Trained] = {}
        for side, event in _in_turns(runs):
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


def _in_turns(runs: dict[str, Iterator[TrainEvent]]) -> Iterator[tuple[str, TrainEvent]]:
    """Events of both, a step at a time; the one with fewer steps goes next."""
    going, progress = dict(runs), dict.fromkeys(runs, -1)
    while going:
        side = min(going, key=progress.__getitem__)
        for event in going[side]:
            yield side, event
            if isinstance(event, Stepped):
                progress[side] = event.step
                break
        else:
            del going[side]
