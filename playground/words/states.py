"""States: what a run's losses say about it."""

from __future__ import annotations

import math

from ..data.baselines import NOTHING_LEFT
from ..training.states import (
    BELOW,
    BOTH_ROSE,
    BY_HEART,
    CUT,
    DIVERGED,
    FEW,
    KNOWN,
    LEARNING,
    LEVEL,
    OVERFITTING,
    UNCLEAR,
    UNMASKED,
    UNMEASURED,
    State,
)
from .baselines import from_the_best
from .corpus import REMEDY
from .result import Result

TONES = {
    LEARNING: "good", LEVEL: "good", OVERFITTING: "warning", DIVERGED: "error",
    UNMASKED: "warning", BY_HEART: "warning", BELOW: "warning", UNCLEAR: "info",
}  # fmt: skip
"""The colour of each kind: good, info, warning or error."""
CALMER = "Try a lower learning rate, a longer warm-up or gradient clipping."
NO_MASK = (
    "In training, every token could see the token it had to predict. The loss falls towards zero, but the text shows "
    "what the model really learned."
)


def result(state: State) -> Result:
    """The verdict, the numbers behind it, and what to do about it."""
    return Result(headline(state), _numbers(state), _details(state))


def headline(state: State) -> str:
    """The verdict, in a few words."""
    if state.kind == UNCLEAR:
        return {
            UNMEASURED: "Nothing has been measured yet.",
            FEW: "Too few evaluations for a verdict." if state.over else "Too early for a verdict.",
            CUT: f"These are the weights of step {state.since or 0:,} of a longer run.",
            BOTH_ROSE: "Both losses rise.",
        }.get(state.why, f"The loss {'was still' if state.over else 'is'} going up and down.")
    return {
        DIVERGED: "Diverged: the learning rate is probably too high.",
        UNMASKED: "Trained without a mask: the loss is misleading.",
        BY_HEART: f"It {'knows' if state.now is not None and state.now < KNOWN else 'is learning'} this text by heart.",
        BELOW: "Below the best possible loss.",
        OVERFITTING: f"Overfitting since step {state.since or 0:,}.",
        LEARNING: "Still falling at the end." if state.over else "Learning.",
        LEVEL: "It predicts almost as well as possible." if _nothing_left(state) else "Levelled off.",
    }[state.kind]


def overfits(state: State) -> str:
    """What overfitting means for this run."""
    does = "has memorised" if state.memorised else "fits"
    then = f"at step {state.since:,}" if state.since else "before training"
    return f"It {does} its training text, but predicts unseen text worse than {then}."


def _numbers(state: State) -> str:
    if state.why in (UNMEASURED, FEW, CUT) or state.kind == UNMASKED:
        return ""
    if state.kind == DIVERGED:
        if state.peak is None:
            return "The loss is no longer a number."
        return f"The loss jumped to {_rough(state.peak[1])} by step {state.peak[0]:,}."
    step, lowest = state.lowest
    if state.kind == BELOW:
        return f"The lowest validation loss was {lowest:.4f}; the best possible is {state.now - state.left:.4f}."
    if state.kind == OVERFITTING or state.why == BOTH_ROSE:
        before, now = state.training
        rise, move = f"from {lowest:.4f} to {state.now:.4f}", f"from {before:.4f} to {now:.4f}"
        if state.kind == OVERFITTING:
            return f"The validation loss rose {rise}, while the training loss fell {move}."
        return f"Since step {step:,}, the validation loss has risen {rise}, and the training loss {move}."
    if state.kind == BY_HEART or (state.kind == LEVEL and _nothing_left(state)):
        above = "" if state.left is None else f", {from_the_best(state.left)}"
        return f"The validation loss is {state.now:.4f}{above}."
    lower = f"{abs(state.fell):.4f} {'lower' if state.fell >= 0 else 'higher'}"
    words = f"Since step {state.since:,}, the later half of the evaluations averages {lower} than the earlier half."
    if state.kind != LEARNING and state.now - lowest > 5e-5:
        words += f" The lowest loss was {lowest:.4f}, at step {step:,}; the last is {state.now:.4f}."
    return words


def _details(state: State) -> str:
    """What it means and what to do; empty if nothing needs to be done."""
    if state.kind == OVERFITTING:
        if not state.since:
            return "It learns from the training text, but this does not help on held-out text."
        fewer = ", fewer steps" if state.memorised else ""
        better = f"The weights of step {state.since:,} predict unseen text better."
        return f"{better} More text, a smaller model{fewer} or dropout would help."
    if state.over and not _nothing_left(state):
        if state.kind == LEARNING:
            return "Train longer to see how far it gets."
        if state.kind == LEVEL:
            return "More steps, a larger model or more text may lower the loss further."
    if state.why == BOTH_ROSE:
        return "A lower learning rate may help."
    return {
        DIVERGED: CALMER,
        UNMASKED: f"{NO_MASK} Train with the causal mask to see what it can learn.",
        BY_HEART: f"Its validation text also occurs in its training text. {REMEDY}",
        BELOW: "Measure it on more validation text. Check that none of it was in the training text.",
    }.get(state.kind, "")


def _nothing_left(state: State) -> bool:
    """Whether the loss is at the best possible one, or at 0 if that is unknown."""
    left = state.now if state.left is None else state.left
    return left is not None and math.isfinite(left) and left < NOTHING_LEFT


def _rough(loss: float) -> str:
    """A loss to three digits."""
    return f"{loss:,.0f}" if loss >= 100 else f"{loss:.3g}"
