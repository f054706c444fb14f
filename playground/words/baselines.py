"""Baselines in words: what each knows, how large a loss is, which baselines it has passed, and how far the floor is."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..data.baselines import CLEARLY, NOTHING_LEFT, Baselines

NO_MASK = (
    "This model has no causal mask: while it is trained, every token sees the one it should predict, so the loss falls "
    "towards nothing. When it writes there is no future to copy from, and the text shows what it has really learned."
)


class Baseline(NamedTuple):
    """One guesser: what it is called, what it loses, what it knows, and how it writes."""

    name: str
    loss: float
    """Nats per token."""
    sentence: str
    text: str
    """Empty where none was written."""


def each_baseline(baselines: Baselines) -> list[Baseline]:
    """From worst to best, what each guesser knows and how it writes."""
    return [
        Baseline(name, loss, f"{_knows(baselines, name)}: {choices(baselines, loss)}.", baselines.texts.get(name, ""))
        for name, loss in baselines.losses()
    ]


def _knows(baselines: Baselines, name: str) -> str:
    unit = baselines.unit
    if name == "uniform":
        vocabulary, occur = round(math.exp(baselines.uniform)), round(math.exp(_alike(baselines)[1]))
        few = f", though {occur:,} {unit}{'s occur' if occur > 1 else ' occurs'}" if occur < vocabulary else ""
        return f"Guesses all {vocabulary:,} tokens of the vocabulary alike{few}"
    if name == "unigram":
        return f"Knows how often each {unit} comes, whatever stands before it"
    if name == "bigram":
        return f"Knows which {unit} comes how often after which"
    if name == "floor":
        return "Knows the rules that wrote this text; what it loses is chance: who sees no more cannot guess it"
    return f"Knows what came how often after the last {baselines.order - 1} {unit}s"


# ---- how large a loss is ---------------------------------------------------------------------------------------------


def equally_likely(loss: float) -> str:
    """e^loss, the number of equally likely choices that a loss amounts to, to three digits."""
    number = math.exp(min(loss, 700))
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def choices(baselines: Baselines, loss: float) -> str:
    """A loss in words: as unsure as one who has to choose among so many, or worse than any who is unsure."""
    if loss > baselines.uniform + NOTHING_LEFT:
        return f"more surprised than one who finds all {math.exp(baselines.uniform):,.0f} tokens equally likely"
    return f"as unsure as between {equally_likely(loss)} equally likely {baselines.unit}s"


def size_of_loss(baselines: Baselines, loss: float) -> str:
    """A loss in choices and in bits per character. Words that are unknown are spared their letters, so a text in which
    there may be some has no bits per character that compare."""
    words, known = choices(baselines, loss), baselines.unit != "word" or baselines.floor is not None
    bits = f"; {baselines.bits_per_character(loss):.2f} bits per character" if known else ""
    return f"{words[0].upper()}{words[1:]}{bits}."


# ---- how good it is --------------------------------------------------------------------------------------------------


def to_the_floor(gap: float) -> str:
    """How far a loss is from the floor, given the loss less the floor in nats."""
    return f"{abs(gap):.4f} nats {'above' if gap >= 0 else 'below'} the floor"


def how_good(baselines: Baselines, loss: float, clauses: str = "") -> str:
    """How good a validation loss is, and what is left to learn, in `clauses` of `excess_clauses`, if any."""
    if not math.isfinite(loss):
        return "The loss is not a number."
    gap = None if baselines.floor is None else loss - baselines.floor
    if gap is not None and gap < -NOTHING_LEFT:
        return (
            f"{to_the_floor(gap)}, which no honest model can keep up: "
            "too few validation tokens to judge by, or the validation text leaked into the training."
        )
    if gap is not None and gap < NOTHING_LEFT:
        return f"{to_the_floor(gap)}: next to nothing is left to learn in windows of this length."
    words = passed(baselines, loss)
    if gap is None:
        words = f"{words} Ordinary text has no known floor."
    else:
        learned = baselines.learned(loss)
        share = f"; of the nats between the bigram and the floor it has gained {100 * learned:.1f} %" if learned else ""
        words = f"{words} It is {to_the_floor(gap)}{share}."
    if not clauses or loss > baselines.uniform:
        return words
    return f"{words} {clauses[0].upper()}{clauses[1:]}."


def passed(baselines: Baselines, loss: float) -> str:
    """Which baselines a loss has passed, and what the model must know to do so."""
    last, known = baselines.passed(loss), dict(baselines.losses())
    if last is None:
        (alike, nats), few = _alike(baselines), _by_so_few(baselines, "uniform")
        if nats == 0:
            return f"There is but one {baselines.unit} in this text: nothing to guess."
        if few and loss <= nats + baselines.clearly("uniform"):
            return f"Whether it is better than {alike} {few}."
        return f"{'Worse' if loss > nats else 'Not clearly better yet'} than {alike}."
    shows = {
        "uniform": f"so it knows that some {baselines.unit}s come more often",
        "unigram": "so it uses what stands before",
        "bigram": f"so it uses more than the last {baselines.unit}",
    }.get(last, f"so it uses more than the last {baselines.order - 1} {baselines.unit}s")
    names = [name for name, _ in baselines.steps()]
    after = names[names.index(last) + 1 :]
    return f"Passed the {last} ({known[last]:.4f}), {shows}{_not_yet(baselines, loss, after[0]) if after else ''}."


def _not_yet(baselines: Baselines, loss: float, name: str) -> str:
    """How a loss compares with the next baseline, which it has not clearly passed."""
    nats, best = dict(baselines.losses())[name], baselines.at_best.get(name, math.inf)
    suited = f"; {best:.4f} if smoothed to suit this text best" if best < nats - CLEARLY else ""
    baseline = f"the {name} ({nats:.4f}{suited})"
    if min(nats, best) <= baselines.clearly(name):
        return f"; {baseline} leaves too little to tell more"
    if loss > nats + baselines.clearly(name):
        return f", and is above {baseline}"
    if few := _by_so_few(baselines, name):
        return f"; whether it lies below {baseline} {few}"
    return f", and is not clearly below {baseline}"


def _alike(baselines: Baselines) -> tuple[str, float]:
    """What one does who knows nothing but what occurs, and loses; older records do not know what does."""
    if (occurs := baselines.at_best.get("uniform")) is None:
        return (
            f"guessing all {math.exp(baselines.uniform):,.0f} tokens alike ({baselines.uniform:.4f})",
            baselines.uniform,
        )
    return f"guessing all {math.exp(occurs):,.0f} {baselines.unit}s that occur alike ({occurs:.4f})", occurs


def _by_so_few(baselines: Baselines, name: str) -> str:
    """From what a loss near a baseline cannot be told from it; empty where enough tokens judge."""
    if baselines.clearly(name) <= CLEARLY:
        return ""
    judge = f"{baselines.unit}s that judge" if baselines.tokens > 1 else f"{baselines.unit} that judges"
    return f"cannot be told from the {baselines.tokens:,} {judge} (± {baselines.chance[name]:.2f})"
