"""States: what a run's losses say about it, as a kind and the numbers behind it. Page, shell and reports all use it.

| kind | rule, first that holds |
|---|---|
| diverged | a loss is not a number, or it jumped by over half a nat and has not fallen as far since |
| sees its answers | the model has no causal mask |
| by heart | nearly all of the validation text also occurs in the training text |
| below best possible | its lowest validation loss is below what the text's own generator loses |
| overfitting | the last validation losses are above the lowest by more than they waver; training fell on |
| learning | in the last third of the evaluations, the later half is lower on average, by more than they waver |
| levelled off | the validation losses of the last third are all within 0.02 nats |
| unclear | none of these, or fewer than five evaluations |

An evaluation scores the same windows every time, so a change from one to the next comes from the model. How far losses
waver is read from the curve itself: by its largest move against the trend that would be claimed.

A rise is three evaluations in a row. Of a run that goes on it takes six, so that hardly any claim is taken back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ..data.baselines import NOTHING_LEFT, Baselines
from ..data.overlap import NEARLY_ALL

if TYPE_CHECKING:
    from .history import History

LEARNING, LEVEL, OVERFITTING, DIVERGED = "learning", "levelled off", "overfitting", "diverged"
UNMASKED, BY_HEART = "sees its answers", "by heart"
BELOW, UNCLEAR = "below best possible", "unclear"
UNMEASURED, FEW, CUT, BOTH_ROSE, MIXED = "unmeasured", "too few evaluations", "cut", "both losses rose", "mixed"
"""Why a run is unclear. If it is CUT, only the weights of one moment, `since`, are known."""

KNOWN = 0.25
"""A model knows a text by heart if it loses fewer nats per token on it: it then expects nearly every token."""
LITTLE = 0.01
"""Changes of the validation loss below this many nats do not matter; a claim needs twice as much."""
JUMP = 0.5
"""A loss has jumped if it is this many nats above the lowest before it: more than any batch explains."""
FEWEST = 5
"""From this many evaluations on, something can be said about their course."""
IN_A_ROW = 3
"""Evaluations above the lowest that make a rise, once a run has ended."""
LASTS = 2 * IN_A_ROW
"""Evaluations above the lowest that make a rise while it goes on: a shorter one often ends by itself."""


@dataclass(frozen=True)
class State:
    """One run at one moment. Fields that the kind does not need are None."""

    kind: str
    since: int | None = None
    """The step after which the state holds."""
    now: float | None = None
    """The last validation loss; None if nothing was measured."""
    lowest: tuple[int, float] | None = None
    """Step and validation loss of the best evaluation."""
    training: tuple[float, float] | None = None
    """The training loss at the best evaluation and at the last one."""
    peak: tuple[int, float] | None = None
    """Step and loss of the highest point of a jump."""
    fell: float | None = None
    """Nats by which the validation loss is lower in the later half of the evaluations since `since`."""
    left: float | None = None
    """Nats above the floor, if that is known."""
    over: bool = False
    """Whether the run has ended."""
    why: str = ""
    """Why it is unclear: one of UNMEASURED, FEW, CUT, BOTH_ROSE, MIXED."""

    @property
    def memorised(self) -> bool:
        """Whether it overfits and knows its training text by heart."""
        return self.kind == OVERFITTING and self.training[1] < KNOWN


def state_of(history: History, *, causal: bool = True, baselines: Baselines | None = None) -> State:
    """The run's state, judged by its evaluations so far.

    Args:
        causal: whether the model has its mask.
        baselines: of the text, if known; no model with a mask can get clearly below their `floor`.
    """
    rows = list(zip(*(history.evaluations[name] for name in ("step", "train_loss", "val_loss"))))
    best, ended = history.best, (history.finished or {}).get("reason")
    if not rows:
        return State(UNCLEAR, why=UNMEASURED)
    facts = {"now": rows[-1][2], "lowest": best, "over": ended is not None}
    if best is None or not math.isfinite(rows[-1][2]) or ended == "diverged":
        return State(DIVERGED, best and best[0], **facts)
    steps, training, validation = zip(*(row for row in rows if math.isfinite(row[2])))
    at, floor = steps.index(best[0]), baselines.floor if baselines is not None else None
    facts |= {"training": (training[at], training[-1]), "left": None if floor is None else validation[-1] - floor}
    if jump := _jump(history, steps, training, validation):
        return State(DIVERGED, jump[0], **facts, peak=jump[1:])
    risen = len(validation) >= FEWEST and _above(validation, at) >= (LASTS if ended is None else IN_A_ROW)
    if risen and training[-1] > training[at]:
        return State(UNCLEAR, best[0], **facts, why=BOTH_ROSE)
    if not causal:
        return State(UNMASKED, **facts)
    if baselines is not None and baselines.overlap >= NEARLY_ALL:
        return State(BY_HEART, **facts)
    if floor is not None and best[1] < floor - 2 * LITTLE:
        return State(BELOW, **facts)
    if ended == "moment":  # what followed is cut off
        return State(UNCLEAR, int(max(history.last_step, steps[-1])), **facts, why=CUT)  # files keep few steps
    if risen:
        return State(OVERFITTING, best[0], **facts)
    if len(validation) < FEWEST:
        return State(UNCLEAR, **facts, why=FEW)
    half = max(2, -(-len(validation) // 6))
    recent = validation[-2 * half :]
    facts |= {"since": int(steps[-2 * half]), "fell": (sum(recent[:half]) - sum(recent[half:])) / half}
    wavers = max(0.0, *(b - a for a, b in pairwise(recent)))
    if validation[-1] - (floor or 0.0) < NOTHING_LEFT:
        return State(LEVEL, **facts)
    if facts["fell"] > max(2 * LITTLE, 2 * wavers):
        return State(LEARNING, **facts)
    return State(LEVEL, **facts) if max(recent) - min(recent) <= 2 * LITTLE else State(UNCLEAR, **facts, why=MIXED)


def is_behind(last: float | None, best: float) -> bool:
    """Whether a loss is noticeably above the best one, unknown, or not a number."""
    return last is None or not last - best <= LITTLE


def risen_for(history: History, every: int = 1) -> int:
    """How many of the last evaluations in a row say that the run is overfitting. Each is above the lowest by more than
    losses waver, while the training loss is below its value then.

    Only those at multiples of `every` steps count. Otherwise the one made when a run was stopped would make a resumed
    run differ from an uninterrupted one.
    """
    columns = (history.evaluations[name] for name in ("step", "train_loss", "val_loss"))
    regular = [row for row in zip(*columns) if every and row[0] % every == 0 and math.isfinite(row[2])]
    if len(regular) < FEWEST:
        return 0
    _, training, validation = zip(*regular)
    at = validation.index(min(validation))
    return min(_above(validation, at), _in_a_row([loss < training[at] for loss in training[at + 1 :]]))


def _above(validation: Sequence[float], at: int) -> int:
    """How many of the last evaluations are above the lowest, number `at`, by more than losses have lately fallen."""
    after = validation[at + 1 :]
    fallen = max((a - b for a, b in pairwise(after[-2 * IN_A_ROW :])), default=0.0)
    return _in_a_row([loss - validation[at] > max(2 * LITTLE, 2 * fallen) for loss in after])


def _in_a_row(holds: Sequence[bool]) -> int:
    """How many at the end are true, counted backwards to the first that is not."""
    return next((n for n, held in enumerate(reversed(holds)) if not held), len(holds))


def _jump(
    history: History, steps: Sequence[int], training: Sequence[float], validation: Sequence[float]
) -> tuple[int, int, float] | None:
    """(step before, step, loss) of the highest jump: of the validation and training losses together, or of a step's
    loss above the first step's. None if there was none, or if losses have since fallen further below where the jump
    began than it rose above."""
    jumps, best = [], 0
    for i, loss in enumerate(validation):
        if min(loss - validation[best], training[i] - training[best]) > JUMP:
            jumps.append((loss, steps[i], steps[best], validation[best]))
        elif loss < validation[best]:
            best = i
    if not jumps and history.steps["loss"]:
        first = history.steps["loss"][0]
        made = zip(history.steps["step"], history.steps["loss"])
        jumps = [(loss, step, 0, first) for step, loss in made if loss - first > JUMP and step <= steps[-1]]
    if not jumps:
        return None
    peak, step, before, start = max(jumps)
    made_good = min(loss for at, loss in zip(steps, validation) if at >= step) < start - (peak - start)
    return None if made_good else (int(before), int(step), peak)
