"""What a run's losses say about it, from its `State`: headline, number, advice."""

from __future__ import annotations

import math

from ..data.baselines import NOTHING_LEFT
from ..training.states import (
    BELOW,
    BOTH_ROSE,
    CUT,
    DIVERGED,
    FEW,
    LEARNING,
    LEVEL,
    OVERFITTING,
    UNCLEAR,
    UNMASKED,
    UNMEASURED,
    State,
)
from .baselines import NO_MASK, to_the_floor

TONES = {
    LEARNING: "good", LEVEL: "good", OVERFITTING: "warning", DIVERGED: "error",
    UNMASKED: "warning", BELOW: "warning", UNCLEAR: "info",
}  # fmt: skip
"""How each kind is coloured: good, info, warning or error."""
CALMER = "Try a lower learning rate, a longer warm-up or gradient clipping."


def in_words(state: State) -> str:
    """All there is to say."""
    return f"{says(state)} {advice(state)}".strip()


def says(state: State) -> str:
    """What is seen: the headline, then the numbers."""
    return f"{headline(state)} {_numbers(state)}".strip()


def headline(state: State) -> str:
    """The verdict, in a few words."""
    if state.kind == UNCLEAR:
        return {
            UNMEASURED: "Nothing has been measured yet.",
            FEW: "Too few evaluations for a verdict." if state.over else "Too early to tell where this leads.",
            CUT: f"These are the weights of step {state.since or 0:,} of a run that went on.",
            BOTH_ROSE: "Both losses rise.",
        }.get(state.why, "It is not clear whether it still falls.")
    return {
        DIVERGED: "Diverged: the learning rate is too high.",
        UNMASKED: NO_MASK,
        BELOW: "Below the floor.",
        OVERFITTING: f"Overfitting since step {state.since or 0:,}.",
        LEARNING: "Still falling at the end." if state.over else "Learning.",
        LEVEL: "Next to nothing is left to learn." if _nothing_left(state) else "Levelled off.",
    }[state.kind]


def _numbers(state: State) -> str:
    if state.why in (UNMEASURED, FEW, CUT) or state.kind == UNMASKED:
        return ""
    if state.kind == DIVERGED:
        if state.peak is None:
            return "The loss is no longer a number."
        return f"The loss jumped to {_rough(state.peak[1])} by step {state.peak[0]:,}."
    step, lowest = state.lowest
    if state.kind == BELOW:
        floor = state.now - state.left
        return (
            f"The lowest validation loss was {lowest:.4f}, but the text's own generator loses {floor:.4f}, which no "
            "honest model can beat."
        )
    rose = f"The validation loss rose from {lowest:.4f} to {state.now:.4f}"
    if state.kind == OVERFITTING:
        before, now = state.training
        learned = "It begins to learn the training text by heart." if state.since else (
            "What it learns from the training text does not help with the text that judges it."
        )  # fmt: skip
        return f"{rose}, while the training loss fell from {before:.4f} to {now:.4f}. {learned}"
    if state.why == BOTH_ROSE:
        before, now = state.training
        return f"{rose} since step {step:,}, the training loss from {before:.4f} to {now:.4f}."
    if state.kind == LEVEL and _nothing_left(state):
        above = "" if state.left is None else f", {to_the_floor(state.left)}"
        return f"The validation loss is {state.now:.4f}{above}."
    words = f"The validation loss was {abs(state.fell):.4f} nats {'lower' if state.fell >= 0 else 'higher'} on average "
    words += f"in the later half of the evaluations since step {state.since:,} than in the earlier one."
    if state.kind != LEARNING and state.now - lowest > 5e-5:
        words += f" The lowest was {lowest:.4f} after step {step:,}; it is {state.now:.4f} now."
    return words


def advice(state: State) -> str:
    """What may be done about it; empty where nothing needs to be."""
    if state.kind == DIVERGED:
        return CALMER
    if state.why == BOTH_ROSE:
        return "A lower learning rate may do better."
    if state.kind == UNMASKED:
        return "Train it with the causal mask on to see what it can learn honestly."
    if state.kind == BELOW:
        return "Judge it on more validation text, and see that none of it was learned from."
    if state.kind == OVERFITTING and state.since:
        return (
            f"The weights of step {state.since:,} are the better ones. "
            "More text, a smaller model, fewer steps or dropout help."
        )
    if state.over and not _nothing_left(state):
        if state.kind == LEARNING:
            return "Train longer to see how far it comes."
        if state.kind == LEVEL:
            return "More steps, a larger model or more text may still reach lower."
    return ""


def _nothing_left(state: State) -> bool:
    """Whether the loss is at the floor, or where none is known, at 0."""
    left = state.now if state.left is None else state.left
    return left is not None and math.isfinite(left) and left < NOTHING_LEFT


def _rough(loss: float) -> str:
    """A loss to three digits."""
    return f"{loss:,.0f}" if loss >= 100 else f"{loss:.3g}"
