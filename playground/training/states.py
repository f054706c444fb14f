"""States: what a run's losses say about it, and what to do. One place for page, shell, cards and reports.

An evaluation scores the same windows every time, so a change from one to the next is the model's own; what is not trend
is jitter, from the steps' batches. Its size is read from the curve itself, and nothing is said that it could explain.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from ..data.baselines import NOTHING_LEFT, Ladder

if TYPE_CHECKING:
    from .history import History

LEARNING, LEVEL, OVERFITTING, UNSTEADY = "learning", "levelled off", "overfitting", "unsteady"
DIVERGED, UNMASKED, BELOW, UNCLEAR = "diverged", "sees its answers", "below the floor", "unclear"
TONES = {
    LEARNING: "good", LEVEL: "good", OVERFITTING: "warning", UNSTEADY: "warning",
    DIVERGED: "error", UNMASKED: "warning", BELOW: "warning", UNCLEAR: "info",
}  # fmt: skip
"""How each is coloured: green is for good."""

RISEN = 0.02
"""Nats above its best at which a validation loss may be said to have risen."""
GROSS = 0.5
"""Nats above its best that no jitter of these curves explains, where three evaluations have them."""
COME_BACK = 1 / 4
"""Of the height that it had risen by at most: a loss above no more than that has come back, however unsteadily."""
LITTLE = 0.01
"""Nats between the two halves of a stretch of evaluations, below which nothing worth a wait is going on, unless more
than SMALL_PART of what is left goes on."""
SMALL_PART = 1 / 3
"""Of what is left above the floor: less than that is a small change against it."""
FEWEST = 5
"""Evaluations, from which on there is something to be said about their course."""
RECENT = 24
"""Evaluations from which the jitter is read."""
SURE_OF_FALL = 3.0
"""Times the jitter that a fall must have to be said."""
IN_A_ROW = 4
"""Evaluations that are each above the one before, after which a rise is said whatever the jitter; one less is enough
where each is above by RISEN."""


NO_MASK = (
    "This model has no causal mask: while it is trained, every token sees the one it should predict, so the loss falls "
    "towards nothing. When it writes there is no future to copy from, and the text shows what it has really learned."
)


def to_the_floor(gap: float) -> str:
    """How far a loss is from the floor, given the loss less the floor in nats."""
    return f"{abs(gap):.4f} nats {'above' if gap >= 0 else 'below'} the floor"


@dataclass(frozen=True)
class State:
    """One run at one moment."""

    kind: str
    """One of TONES."""
    says: str
    """What is seen, as a sentence or two."""
    do: str = ""
    """What may be done about it, as a sentence; empty where nothing needs to be."""
    since: int | None = None
    """The step after which it is so, where there is one."""

    @property
    def tone(self) -> str:
        """good, info, warning or error."""
        return TONES[self.kind]

    @property
    def in_words(self) -> str:
        """All of it."""
        return f"{self.says} {self.do}".strip()


def state_of(history: History, *, causal: bool = True, ladder: Ladder | None = None) -> State:
    """What the evaluations so far say.

    Args:
        causal: whether the model has its mask.
        ladder: of the text, where it is known; its floor is what no honest model gets below.
    """
    steps, training, validation = (history.evaluations[name] for name in ("step", "train_loss", "val_loss"))
    best, over = history.best, history.finished is not None
    if best is None or not math.isfinite(validation[-1]) or (history.finished or {}).get("reason") == "diverged":
        if not validation:
            return State(UNCLEAR, "Nothing has been measured yet.")
        return State(DIVERGED, "It diverged: the loss is no number any more.", CALMER, since=best and best[0])
    step, lowest = best
    at, jitter, floor = steps.index(step), _jitter(validation), ladder.floor if ladder is not None else None
    after, beside = validation[at + 1 :][-3:], training[at + 1 :][-3:]
    peak = max(loss for loss in validation[at:] if math.isfinite(loss))
    far = len(after) > 1 and min(after) - lowest > max(GROSS, (validation[0] - lowest) / 2)
    if far and min(beside) > training[at] and validation[-1] - lowest > COME_BACK * (peak - lowest):
        here = f" at step {steps[validation.index(peak)]:,.0f} and is {validation[-1]:.4f} now"
        here = here if validation[-1] < peak else ""
        words = f"It diverged after step {step:,}: the validation loss rose from {lowest:.4f} to {peak:.4f}{here}; the "
        words += f"training loss rose with it, from {training[at]:.4f} to {training[-1]:.4f}."
        return State(DIVERGED, words, CALMER, since=step)
    risen = _has_risen(_past_warm_up(history, steps, validation, at), at)
    jump = _jump(history)
    if jump and jump[0] > step:
        now = f"It is {validation[-1]:.4f} now, still above the {lowest:.4f}."
        return State(UNSTEADY, f"Unsteady: {jump[1]} {now}", CALMER, since=step)
    if risen and training[-1] > training[at] and _rate_rose(history, step):
        words = (
            f"The learning rate rose again after step {step:,}, where the run was lengthened, and the loss with it: "
        )
        return State(UNCLEAR, f"{words}{lowest:.4f} there, {validation[-1]:.4f} now.")
    if risen and training[-1] > training[at]:
        words = (
            f"Unsteady: the validation loss was {lowest:.4f} after step {step:,} and is {validation[-1]:.4f} now, and "
        )
        words += (
            f"the training loss rose with it, from {training[at]:.4f} to {training[-1]:.4f}: the steps are too large."
        )
        return State(UNSTEADY, words, "A lower learning rate or a longer warm-up would do better.", since=step)
    if not causal:
        return State(UNMASKED, NO_MASK, "Train it with the causal mask on to see what it can learn honestly.")
    if floor is not None and lowest < floor - max(LITTLE, SURE_OF_FALL * jitter):
        words = f"Below the floor: {lowest:.4f} where the text's own generator loses {floor:.4f}, which no "
        words += "honest model can keep up."
        return State(BELOW, words, "Judge it on more validation text, and see that none of it was learned from.")
    if over and history.finished.get("reason") == "moment":  # what came of it afterwards is cut off
        now = max(history.last_step, steps[-1])  # files keep few steps
        return State(UNCLEAR, f"These are the weights of step {now:,.0f} of a run that went on.")
    if risen:
        return _overfitting(history, step, lowest)
    if len(validation) < FEWEST:
        state = State(UNCLEAR, "Too few evaluations for a verdict." if over else "Too early to tell where this leads.")
    else:
        state = _course(history, over=over, floor=floor, jump=jump)
    if lowest < (floor or 0.0) + NOTHING_LEFT:
        state = replace(state, do="")  # nothing could reach lower
    if jump and state.kind != UNSTEADY:
        state = replace(state, says=f"{state.says} On the way {jump[1]}", do=CALMER)
    return state


CALMER = "Try a lower learning rate, a longer warm-up or gradient clipping."


def _rate_rose(history: History, step: int) -> bool:
    """Whether the rate had fallen from its peak by this step and is more than twice as high now."""
    rates = history.steps["learning_rate"]
    at = bisect_right(history.steps["step"], step) - 1
    return at >= 0 and max(rates[: at + 1]) > 1.1 * rates[at] and rates[-1] > 2 * rates[at]


def _jump(history: History) -> tuple[float, str] | None:
    """The step and, in words, the highest of the evaluations that had jumped too far above the lowest before them for
    anything but too large steps; None where there was none."""
    steps, training, validation = (history.evaluations[name] for name in ("step", "train_loss", "val_loss"))
    best, highest = 0, None
    for i, loss in enumerate(validation):
        if loss - validation[best] > GROSS and training[i] > training[best]:
            if highest is None or loss > validation[highest[1]]:
                highest = best, i
        elif loss < validation[best]:
            best = i
    if highest is None:
        return None
    low, high = highest
    words = f"the validation loss jumped from {validation[low]:.4f} to {validation[high]:.4f} by step "
    return steps[high], f"{words}{steps[high]:,.0f}, the training loss with it: the steps are too large."


def risen_for(history: History, every: int = 1) -> int:
    """How many of the last evaluations say, one after the other, that validation has risen while training went on
    falling: above the best one, at a training loss below that moment's, and further than jitter explains.

    Only those at multiples of `every` steps count: another one, made where a run was stopped, would tell a resumed run
    from one that was not.
    """
    columns = (history.evaluations[name] for name in ("step", "train_loss", "val_loss"))
    regular = [row for row in zip(*columns) if every and row[0] % every == 0 and math.isfinite(row[2])]
    if not regular:
        return 0
    steps, training, validation = zip(*regular)
    at = validation.index(min(validation))
    count = 0
    for here, learned in zip(reversed(validation[at + 1 :]), reversed(training[at + 1 :])):
        if not (here > validation[at] + RISEN and learned < training[at]):
            break
        count += 1
    return count if _has_risen(_past_warm_up(history, steps, validation, at), at) else 0


def _past_warm_up(history: History, steps: Sequence[float], validation: Sequence[float], at: int) -> list[float]:
    """The evaluations without those that came after the lowest, number `at`, but before the rate had risen to its peak:
    what goes up while the steps grow larger need not stay there."""
    made, rates = history.steps["step"], history.steps["learning_rate"]
    peak = next((made[i] for i in range(len(rates) - 1) if rates[i + 1] <= rates[i]), made[-1] if made else 0)
    return [loss for i, loss in enumerate(validation) if i <= at or steps[i] > peak]


def _has_risen(validation: Sequence[float], at: int) -> bool:
    """Whether the evaluations have risen since the lowest, number `at`, further than their jitter explains.

    The lowest of n jittering values lies √(2 ln n) times the jitter below their mean, risen or not, so that much is
    taken off. Of flat curves with 5 to 100 evaluations one in twenty is called risen. One evaluation alone never is.
    """
    after = validation[at + 1 :]
    late = after[-max(2, -(-len(after) // 2)) :]
    if len(validation) < FEWEST or len(after) < 2 or not _mean(late) - validation[at] > RISEN:
        return False
    rises = [b - a for a, b in pairwise(validation[at:])][-IN_A_ROW:]
    steep = len(rises) >= IN_A_ROW - 1 and min(rises[1 - IN_A_ROW :]) > RISEN
    in_a_row = steep or (len(rises) == IN_A_ROW and min(rises) > 0)
    certain = 0.5 + math.sqrt(2 * math.log(len(validation))) + 5 / math.sqrt(len(late))
    return in_a_row or _mean(late) - validation[at] > certain * _jitter(validation)


def _overfitting(history: History, step: int, lowest: float) -> State:
    training, validation = history.evaluations["train_loss"], history.evaluations["val_loss"]
    at = history.evaluations["step"].index(step)
    words = f"Overfitting since step {step:,}: the validation loss was {lowest:.4f} there and rose to "
    words += f"{validation[-1]:.4f}, while the training loss went from {training[at]:.4f} to {training[-1]:.4f}. "
    if not step:
        words += "What it learns from the training text does not help with the text that judges it."
        return State(OVERFITTING, words, since=step)
    words += "It begins to learn the training text by heart."
    do = f"The weights of step {step:,} are the better ones. More text, a smaller model, fewer steps or dropout help."
    return State(OVERFITTING, words, do, since=step)


def _course(history: History, *, over: bool, floor: float | None, jump: tuple[float, str] | None) -> State:
    """Falling, level, or not to be told apart: the earlier half of the last third of the evaluations against the later
    one; the change is held against what is left above the floor, too. No loss lies below 0, floor or not. A jump (as
    `_jump` tells it) within that third would be most of the change: then nothing is said of halves."""
    steps, validation = history.evaluations["step"], history.evaluations["val_loss"]
    half = max(2, -(-len(validation) // 6))
    since, (step, lowest) = int(steps[-2 * half]), history.best
    left = validation[-1] - (floor or 0.0)
    if left < NOTHING_LEFT:
        side = f"{to_the_floor(left)}: " if floor is not None else ""
        return State(
            LEVEL, f"The validation loss is {validation[-1]:.4f}, {side}next to nothing is left to learn.", since=since
        )
    if jump and jump[0] >= since:
        return State(UNSTEADY, f"Unsteady: {jump[1]} It has come down to {lowest:.4f} since.", CALMER)
    fell = _mean(validation[-2 * half : -half]) - _mean(validation[-half:])
    error = SURE_OF_FALL * _jitter(validation) * math.sqrt(2 / half)
    risen, little = validation[-1] - lowest, min(LITTLE, SMALL_PART * left)
    last = validation[-2 * half :]
    downhill = all(b < a for a, b in pairwise(validation[-IN_A_ROW - 1 :])) and all(b < a for a, b in pairwise(last))
    halves = f"{abs(fell):.4f} nats {'lower' if fell >= 0 else 'higher'} on average in the later half of the "
    halves += f"evaluations since step {since:,} than in the earlier one"
    if (fell > max(error, little) and risen <= max(error, little)) or (downhill and fell > little):
        words = f"{'Still falling at the end' if over else 'Learning'}: {halves}"
        words += f", and {left:.4f} are left above the floor" if floor is not None and fell <= LITTLE else ""
        now = validation[-2] - validation[-1]
        if over and now < fell / 10:
            words += f"; the last evaluation was {abs(now):.4f} {'lower' if now >= 0 else 'higher'} than the one before"
        words += "."
        return State(LEARNING, words, "Train longer to see how far it comes." if over else "")
    lower = f" The lowest was {lowest:.4f} after step {step:,}; it is {validation[-1]:.4f} now." if risen > 5e-5 else ""
    steady = abs(fell) + error <= 2 * LITTLE or max(last) - min(last) <= LITTLE  # the steep beginning may seem jitter
    if steady and abs(fell) <= SMALL_PART * left:
        return State(LEVEL, f"Levelled off: {halves}.{lower}", _after_level(history) if over else "", since=since)
    changes = [b - a for a, b in pairwise(last)]
    one_way = "lower" if max(changes) < 0 else "higher" if min(changes) > 0 else ""
    words = f"Each of the last {len(changes)} evaluations was {one_way} than the one before" if one_way else ""
    words = f"{words or 'It is not clear whether it still falls or rises'}: the validation loss was {halves}, "
    if error >= abs(fell):
        words += f"and its jumps, which may explain {error:.4f}, are larger than that."
    else:
        words += f"of which its jumps may explain {error:.4f}."
    if (learned := history.evaluations["train_loss"][-1]) < validation[-1] / 2:
        lower += f" On the text it learns from it loses {learned:.4f} only: that it knows by far the better."
    return State(UNCLEAR, words + lower)


def _after_level(history: History) -> str:
    rates = history.steps["learning_rate"]
    if rates and rates[-1] < 0.1 * max(rates):
        return (
            "The learning rate had come down to almost nothing, which levels every curve: more steps, asked for from "
            "the start, may still reach lower."
        )
    return "A rate that falls towards the end, a larger model or more text may still reach lower."


def _jitter(losses: Sequence[float]) -> float:
    """Spread of one evaluation around the curve's course, in nats: the typical third difference of the recent ones,
    which has no part in a smooth bend and twenty times the variance of one value. 0 where there are too few."""
    recent = [loss for loss in losses[-RECENT:] if math.isfinite(loss)]
    if len(recent) < FEWEST:
        return 0.0
    differences = [abs(a - 3 * b + 3 * c - d) for a, b, c, d in zip(recent, recent[1:], recent[2:], recent[3:])]
    return statistics.median(differences) / (0.6745 * math.sqrt(20))  # the median of |N(0, 1)|


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
