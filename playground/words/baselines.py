"""Baselines: what each knows, how large a loss is beside them, and how far it is from the best possible."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..data.baselines import CLEARLY, NOTHING_LEFT, Baselines
from .result import Result

BEST = "best possible"
"""The name of the baseline that `Baselines` calls floor."""


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
        vocabulary, occur = round(math.exp(baselines.uniform)), round(math.exp(_guessing(baselines)[1]))
        few = f" Only {occur:,} {unit}{'s occur' if occur > 1 else ' occurs'} in this text." * (occur < vocabulary)
        return f"Guesses among all {vocabulary:,} tokens of the vocabulary.{few}"
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

    A text with unknown words has no bits per character that compare: the model does not spell those words.
    """
    if baselines.unit == "word" and baselines.floor is None:
        return f"{perplexity(loss)}."
    return f"{perplexity(loss)} ({baselines.bits_per_character(loss):.2f} bits per character)."


# ---- how good it is --------------------------------------------------------------------------------------------------


def from_the_best(gap: float) -> str:
    """How far a loss is from the best possible one, given the difference in nats."""
    return f"{abs(gap):.4f} nats {'above' if gap >= 0 else 'below'} the best possible loss"


def how_good(baselines: Baselines, loss: float, excess: str = "") -> Result:
    """How good a validation loss is; `excess` says which tokens carry the remaining loss, if that is known."""
    if not math.isfinite(loss):
        return Result("The loss is not a number.")
    gap = None if baselines.floor is None else loss - baselines.floor
    if gap is not None and gap < NOTHING_LEFT:
        if gap >= -NOTHING_LEFT:
            return Result(f"Almost perfect: {from_the_best(gap)}.")
        why = "Too few validation tokens judge it, or validation text leaked into the training text."
        return Result("Too good to be true.", f"It is {from_the_best(gap)}.", why)
    headline, *details = _passed(baselines, loss)
    number = "Ordinary text has no known best possible loss."
    if gap is not None:
        learned = baselines.learned(loss)
        share = f" and has closed {100 * learned:.1f} % of the gap from the bigram" if learned else ""
        number = f"It is {from_the_best(gap)}{share}."
    return Result(headline, number, " ".join((*details, excess * (loss <= baselines.uniform))).strip())


def _passed(baselines: Baselines, loss: float) -> list[str]:
    """Which baselines a loss has passed, what this shows, and how it compares with the next one."""
    last, losses = baselines.passed(loss), dict(baselines.losses())
    if last is None:
        (guessing, nats), few = _guessing(baselines), _too_few(baselines, "uniform")
        if nats == 0:
            return [f"This text has only one {baselines.unit}: there is nothing to predict."]
        if few and loss <= nats + baselines.clearly("uniform"):
            return ["Too close to call.", f"{few} {guessing}."]
        return [f"{'Worse' if loss > nats else 'Not clearly better'} than {guessing}."]
    shows = {
        "uniform": f"It knows that some {baselines.unit}s are more common.",
        "unigram": "It uses the tokens before.",
        "bigram": f"It uses more than the last {baselines.unit}.",
    }.get(last, f"It uses more than the last {baselines.order - 1} {baselines.unit}s.")
    names = [name for name, _ in baselines.steps()]
    after = names[names.index(last) + 1 :]
    sentences = [f"It beats the {last} baseline ({losses[last]:.4f}).", shows]
    return sentences + ([_not_yet(baselines, loss, after[0])] if after else [])


def _not_yet(baselines: Baselines, loss: float, name: str) -> str:
    """How a loss compares with the next baseline, which it has not clearly passed."""
    nats, best = dict(baselines.losses())[name], baselines.at_best.get(name, math.inf)
    smoothed = f", or {best:.4f} with ideal smoothing" if best < nats - CLEARLY else ""
    baseline = f"the {name} baseline ({nats:.4f}{smoothed})"
    if min(nats, best) <= baselines.clearly(name):
        return f"{baseline[0].upper()}{baseline[1:]} leaves too little room to compare."
    if loss > nats + baselines.clearly(name):
        return f"It is above {baseline}."
    if few := _too_few(baselines, name):
        return f"{few} {baseline}."
    return f"It is not clearly below {baseline}."


def _guessing(baselines: Baselines) -> tuple[str, float]:
    """Guessing among everything that occurs, and its loss. Older records do not say what occurs."""
    occurs = baselines.at_best.get("uniform")
    loss = baselines.uniform if occurs is None else occurs
    which = "tokens" if occurs is None else f"{baselines.unit}s that occur"
    return f"guessing among {math.exp(loss):,.0f} {which} ({loss:.4f})", loss


def _too_few(baselines: Baselines, name: str) -> str:
    """That too few tokens judge a loss near a baseline, as the start of a sentence; empty if they are enough."""
    if baselines.clearly(name) <= CLEARLY:
        return ""
    judges = f"{baselines.unit}{' is' if baselines.tokens == 1 else 's are'} too few"
    return f"{baselines.tokens:,} {judges} (± {baselines.chance[name]:.2f}) to compare it with"
