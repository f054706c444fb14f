"""Judging: whether a step is done, which answer was right, how far off a guess was, and what the page then says."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import Any

from .facts import SLOW, value_of, written
from .reading import Ask, Case, Condition, Scale, Step
from .scene import NotYet, Scene, Value

COMPARES = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


def holds(scene: Scene, condition: Condition) -> bool:
    """Whether all comparisons hold. Raises NotYet if a fact is missing."""
    return all(_compared(scene, *part) for part in condition)


def _compared(scene: Scene, left: str, how: str, right: str) -> bool:
    found = value_of(scene, left)
    if how in ("is", "is not"):
        try:
            other: Value = value_of(scene, right)
        except NotYet:
            other = right  # a word
        return (found == other) == (how == "is")
    return COMPARES[how](found, value_of(scene, right))


def first(scene: Scene, cases: tuple[Case, ...]) -> str | None:
    """What the first case that holds says; None if none does. Raises NotYet."""
    return next((case.says for case in cases if holds(scene, case.when)), None)


def filled(scene: Scene, words: str, otherwise: str | None = None) -> str:
    """The words with every {fact} filled in, or `otherwise` for a missing one. Without `otherwise`, raises NotYet."""

    def one(found: re.Match) -> str:
        try:
            return written(found[1], value_of(scene, found[1]))
        except NotYet:
            if otherwise is None:
                raise
            return otherwise

    return re.sub(r"\{([^{}]*)\}", one, words)


# ---- a guess ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """A guess beside the truth."""

    truth: Value
    """A choice's name, or a number."""
    right: bool | None
    """None if the visitor's numbers do not decide it."""
    words: str


def checked(ask: Ask, guess: Any) -> Value:
    """A guess sent by a page. Raises ValueError for one that could not have been made."""
    scale = ask.number
    if scale is None:
        if guess not in ask.choices:
            raise ValueError("Choose one of the answers")
        return guess
    if isinstance(guess, bool) or not isinstance(guess, (int, float)) or not scale.least <= guess <= scale.most:
        raise ValueError(f"Choose a number from {scale.least:g} to {scale.most:g}")
    return float(guess)


UNCLEAR, ALIKE = "unclear", "alike"
"""An answer that a lesson may give besides its choices: any difference may be chance. Then the choice `alike`,
such as "cannot tell", is right, and no other is wrong."""


def judge(scene: Scene, ask: Ask, guess: Value) -> Judged:
    """Compare the guess with the visitor's own numbers. Raises NotYet if they are not there yet."""
    answer = first(scene, ask.right)
    if ask.choices and answer not in (None, UNCLEAR, *ask.choices):
        answer = str(value_of(scene, answer))
    if answer is None or (answer == UNCLEAR and guess != ALIKE):
        return Judged(UNCLEAR, None, ask.choices.get(ALIKE, "Your numbers do not decide this."))
    if ask.number is not None:
        return _judged_number(ask.number, float(guess), float(value_of(scene, answer)))
    truth = ALIKE if answer == UNCLEAR else answer
    if truth == guess:
        return Judged(truth, True, f"Right: {ask.choices[truth]}")
    return Judged(truth, False, f"Not this time. The answer: {ask.choices.get(truth, truth)}")


def _judged_number(scale: Scale, guess: float, truth: float) -> Judged:
    said, found = (_number(x, scale) for x in (guess, truth))
    unit = f" {scale.unit.removesuffix('s') if said == '1' else scale.unit}".rstrip()
    if said == found:
        return Judged(truth, True, f"Exactly right: {said}{unit}.")
    found += unit if scale.unit == "%" else ""
    if abs(guess - truth) <= max(scale.near, 1e-9):
        return Judged(truth, True, f"Close: you said {said}{unit}, it is {found}.")
    return Judged(truth, False, f"You said {said}{unit}. It is {found}.")


def _number(value: float, scale: Scale) -> str:
    """A number as exactly as the scale, or to a tenth if it is not one of a whole-number scale's marks."""
    digits = len(f"{scale.step:.6f}".rstrip("0").partition(".")[2])
    shown = f"{value:,.{digits}f}" if digits else f"{value:,.1f}".removesuffix(".0")
    return shown.replace("-", "−")


def missing(scene: Scene, step: Step) -> str:
    """The reason why a step has to wait, in words; empty if it can begin.

    The numbers that it names have to be there. If the step only asks, the answer has to be there, too.
    """
    facts = step.names + (step.ask.compared if step.ask and not step.done else [])
    try:
        for name in facts:
            if name not in SLOW:
                value_of(scene, name)
    except NotYet as problem:
        return str(problem)
    return ""


# ---- a step ----------------------------------------------------------------------------------------------------------


def said_of(scene: Scene, step: Step, guess: Value | None) -> tuple[list[str], Judged | None]:
    """What a finished step says, first about the guess. Raises NotYet if a fact is missing."""
    judged = judge(scene, step.ask, guess) if step.ask is not None and guess is not None else None
    shown = [words for group in step.show if (words := first(scene, group)) is not None]
    said = [judged.words] if judged else []
    return said + [filled(scene, words) for words in shown], judged
