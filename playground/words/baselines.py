"""Baselines: what each knows, how large a loss is beside them, and how far it is from the best possible."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..data.baselines import CLEARLY, Baselines
from .result import Result

BEST = "best possible"
"""The name of the baseline that `Baselines` calls floor."""
MUCH_WORSE = 1.0
"""Nats above guessing that no fresh model reaches: it starts up to half a nat above."""


class Baseline(NamedTuple):
    """One baseline: its name, its loss, what it knows, and how it writes."""

    name: str
    """As in `Baselines`."""
    loss: float
    """Nats per token."""
    sentence: str
    text: str
    """Empty if it wrote none."""


def each_baseline(baselines: Baselines) -> list[Baseline]:
    """All baselines from worst to best."""
    return [
        Baseline(name, loss, f"{_knows(baselines, name)} {perplexity(loss)}.", baselines.texts.get(name, ""))
        for name, loss in baselines.losses()
    ]


def title(name: str) -> str:
    """What the page calls a baseline."""
    return BEST if name == "floor" else name


def _knows(baselines: Baselines, name: str) -> str:
    unit = baselines.unit
    if name == "uniform":
        return f"Guesses among all {round(math.exp(baselines.uniform)):,} tokens of the vocabulary."
    return {
        "unigram": f"Knows only how common each {unit} is.",
        "bigram": f"Knows how often each {unit} follows another.",
        "floor": "Knows the grammar behind the text. No model with the same context can do better.",
    }.get(name, f"Knows what usually follows the last {baselines.order - 1} {unit}s.")


# ---- how large a loss is ---------------------------------------------------------------------------------------------


def equally_likely(loss: float) -> str:
    """The perplexity of a loss, e^loss, to three digits."""
    number = math.exp(min(loss, 700))
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def perplexity(loss: float) -> str:
    """As "Perplexity 1.14"."""
    return f"Perplexity {equally_likely(loss)}"


def size_of_loss(baselines: Baselines, loss: float) -> str:
    """A loss as perplexity and as bits per character.

    For a text with unknown words, bits per character cannot be compared: the model does not spell those words.
    """
    if baselines.unit == "word" and baselines.floor is None:
        return f"{perplexity(loss)}."
    return f"{perplexity(loss)} ({baselines.bits_per_character(loss):.2f} bits per character)."


# ---- how good it is --------------------------------------------------------------------------------------------------


def from_the_best(gap: float) -> str:
    """How far a loss is from the best possible one, given the difference in nats."""
    return f"{abs(gap):.4f} {'above' if gap >= 0 else 'below'} the best possible loss"


def how_good(baselines: Baselines, loss: float) -> Result:
    """How good a validation loss is, and what it shows that the model has learned."""
    if not math.isfinite(loss):
        return Result("The loss is not a number.")
    number = "" if baselines.floor is None else f"Its loss is {from_the_best(loss - baselines.floor)}."
    passed = baselines.passed(loss)
    return Result(passed_headline(baselines, loss, ""), number, _shows(baselines, passed) if passed else "")


def _shows(baselines: Baselines, passed: str) -> str:
    """What a model has learned that has passed this baseline."""
    return {
        "uniform": f"It has learned that some {baselines.unit}s are more common than others.",
        "unigram": "It uses the preceding tokens.",
        "bigram": f"It uses more than the last {baselines.unit}.",
    }.get(passed, f"It uses more than the last {baselines.order - 1} {baselines.unit}s.")


def passed_headline(baselines: Baselines, loss: float, state: str) -> str:
    """Which baselines a run's loss has passed; `state` is what its course says, or empty."""
    passed, ahead, unsure = baselines.passed(loss), baselines.ahead(loss), baselines.unsure(loss)
    if passed is None:
        said = beside_guessing(baselines, loss)
    elif unsure is not None and baselines.clearly(unsure) > CLEARLY:
        return f"Below the {unsure} baseline, but too little text to be sure."
    elif unsure is not None:
        said = f"it beats the {passed} baseline and roughly matches the {unsure}"
    else:
        said = f"it beats the {passed} baseline{f', but not the {ahead}' if ahead else ''}"
    return f"{state}: {said}." if state else f"{said[0].upper()}{said[1:]}."


def slips_of(token: str, unit: str) -> str:
    """Why many units (stories, sums) are wrong although the loss is nearly the best possible."""
    return f"{token.capitalize()} by {token}, it can hardly do better. But one slip spoils a whole {unit}."


def beside_guessing(baselines: Baselines, loss: float) -> str:
    """How a loss that has passed no baseline compares with guessing among all tokens."""
    return "worse than guessing" if loss > baselines.uniform + MUCH_WORSE else "no better than guessing"
