"""Baselines in words: what each knows, how large a loss is, which baselines it has passed, and how far the floor is."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..data.baselines import CLEARLY, NOTHING_LEFT, Ladder

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


def each_baseline(ladder: Ladder) -> list[Baseline]:
    """From worst to best, what each guesser knows and how it writes."""
    return [
        Baseline(name, loss, f"{_knows(ladder, name)}: {choices(ladder, loss)}.", ladder.texts.get(name, ""))
        for name, loss in ladder.rungs()
    ]


def _knows(ladder: Ladder, name: str) -> str:
    unit = ladder.unit
    if name == "uniform":
        vocabulary, occur = round(math.exp(ladder.uniform)), round(math.exp(_alike(ladder)[1]))
        few = f", though {occur:,} {unit}{'s occur' if occur > 1 else ' occurs'}" if occur < vocabulary else ""
        return f"Guesses all {vocabulary:,} tokens of the vocabulary alike{few}"
    if name == "unigram":
        return f"Knows how often each {unit} comes, whatever stands before it"
    if name == "bigram":
        return f"Knows which {unit} comes how often after which"
    if name == "floor":
        return "Knows the rules that wrote this text; what it loses is chance: who sees no more cannot guess it"
    return f"Knows what came how often after the last {ladder.order - 1} {unit}s"


# ---- how large a loss is ---------------------------------------------------------------------------------------------


def equally_likely(loss: float) -> str:
    """e^loss, the number of equally likely choices that a loss amounts to, to three digits."""
    number = math.exp(min(loss, 700))
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def choices(ladder: Ladder, loss: float) -> str:
    """A loss in words: as unsure as one who has to choose among so many, or worse than any who is unsure."""
    if loss > ladder.uniform + NOTHING_LEFT:
        return f"more surprised than one who finds all {math.exp(ladder.uniform):,.0f} tokens equally likely"
    return f"as unsure as between {equally_likely(loss)} equally likely {ladder.unit}s"


def size_of_loss(ladder: Ladder, loss: float) -> str:
    """A loss in choices and in bits per character. Words that are unknown are spared their letters, so a text in which
    there may be some has no bits per character that compare."""
    words, known = choices(ladder, loss), ladder.unit != "word" or ladder.floor is not None
    bits = f"; {ladder.bits_per_character(loss):.2f} bits per character" if known else ""
    return f"{words[0].upper()}{words[1:]}{bits}."


# ---- how good it is --------------------------------------------------------------------------------------------------


def to_the_floor(gap: float) -> str:
    """How far a loss is from the floor, given the loss less the floor in nats."""
    return f"{abs(gap):.4f} nats {'above' if gap >= 0 else 'below'} the floor"


def how_good(ladder: Ladder, loss: float, clauses: str = "") -> str:
    """How good a validation loss is, and what is left to learn, in `clauses` of `excess_clauses`, if any."""
    if not math.isfinite(loss):
        return "The loss is not a number."
    gap = None if ladder.floor is None else loss - ladder.floor
    if gap is not None and gap < -NOTHING_LEFT:
        return (
            f"{to_the_floor(gap)}, which no honest model can keep up: "
            "too few validation tokens to judge by, or the validation text leaked into the training."
        )
    if gap is not None and gap < NOTHING_LEFT:
        return f"{to_the_floor(gap)}: next to nothing is left to learn in windows of this length."
    words = passed(ladder, loss)
    if gap is None:
        words = f"{words} Ordinary text has no known floor."
    else:
        learned = ladder.learned(loss)
        share = f"; of the nats between the bigram and the floor it has gained {100 * learned:.1f} %" if learned else ""
        words = f"{words} It is {to_the_floor(gap)}{share}."
    if not clauses or loss > ladder.uniform:
        return words
    return f"{words} {clauses[0].upper()}{clauses[1:]}."


def passed(ladder: Ladder, loss: float) -> str:
    """Which baselines a loss has passed, and what the model must know to do so."""
    last, known = ladder.passed(loss), dict(ladder.rungs())
    if last is None:
        (alike, nats), few = _alike(ladder), _by_so_few(ladder, "uniform")
        if nats == 0:
            return f"There is but one {ladder.unit} in this text: nothing to guess."
        if few and loss <= nats + ladder.clearly("uniform"):
            return f"Whether it is better than {alike} {few}."
        return f"{'Worse' if loss > nats else 'Not clearly better yet'} than {alike}."
    shows = {
        "uniform": f"so it knows that some {ladder.unit}s come more often",
        "unigram": "so it uses what stands before",
        "bigram": f"so it uses more than the last {ladder.unit}",
    }.get(last, f"so it uses more than the last {ladder.order - 1} {ladder.unit}s")
    names = [name for name, _ in ladder.steps()]
    after = names[names.index(last) + 1 :]
    return f"Passed the {last} ({known[last]:.4f}), {shows}{_not_yet(ladder, loss, after[0]) if after else ''}."


def _not_yet(ladder: Ladder, loss: float, name: str) -> str:
    """How a loss compares with the next baseline, which it has not clearly passed."""
    nats, best = dict(ladder.rungs())[name], ladder.at_best.get(name, math.inf)
    suited = f"; {best:.4f} if smoothed to suit this text best" if best < nats - CLEARLY else ""
    baseline = f"the {name} ({nats:.4f}{suited})"
    if min(nats, best) <= ladder.clearly(name):
        return f"; {baseline} leaves too little to tell more"
    if loss > nats + ladder.clearly(name):
        return f", and is above {baseline}"
    if few := _by_so_few(ladder, name):
        return f"; whether it lies below {baseline} {few}"
    return f", and is not clearly below {baseline}"


def _alike(ladder: Ladder) -> tuple[str, float]:
    """What one does who knows nothing but what occurs, and loses; older records do not know what does."""
    if (occurs := ladder.at_best.get("uniform")) is None:
        return f"guessing all {math.exp(ladder.uniform):,.0f} tokens alike ({ladder.uniform:.4f})", ladder.uniform
    return f"guessing all {math.exp(occurs):,.0f} {ladder.unit}s that occur alike ({occurs:.4f})", occurs


def _by_so_few(ladder: Ladder, name: str) -> str:
    """From what a loss near a baseline cannot be told from it; empty where enough tokens judge."""
    if ladder.clearly(name) <= CLEARLY:
        return ""
    judge = f"{ladder.unit}s that judge" if ladder.tokens > 1 else f"{ladder.unit} that judges"
    return f"cannot be told from the {ladder.tokens:,} {judge} (± {ladder.chance[name]:.2f})"
