"""Heads in words: where their weight lies, what their roles are, and the numbers that make a role."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..inspection.heads import EVEN, WeightSummary, spread
from ..inspection.roles import GIVEN_UP, MATTERS, MOST, MOVED, PLACES, REPEATS, Estimate, HeadTests
from .numbers import share, signed

HABIT_NAMES = {
    "previous": "the token before",
    "duplicate": "the same token, earlier",
    "induction": "what followed last time",
    "first": "the first token",
    "itself": "itself",
}
"""Of `inspection.heads.HABITS`."""
ROLE_NAMES = {
    "induction": "looks at what followed this token last time, and lets go with the copy replaced (induction)",
    "duplicate": "looks at an earlier copy of the token",
    "followed": "looks at what followed last time, but mostly by its place: still does with the copy replaced",
    "previous": "looks at the token before",
    "first": "rests on the first token (sink)",
    "itself": "looks at the token itself",
    "even": "spreads its weight evenly",
    "content": "chooses by what the tokens are (content)",
    "unclear": "has no clear role",
}
"""Of `inspection.roles.ROLES`."""
PLACE_NAMES = {
    "previous": "the token before",
    "first": "the first token",
    "itself": "the token itself",
    "duplicate": "an earlier copy of it",
    "induction": "what followed that copy",
}
"""Where a head of a role looks."""


def lies_on(summary: WeightSummary) -> str:
    """Where a head's weight lies on a prompt as a whole, in a few plain words that follow its name."""
    if summary.alone:
        return "has one token only to look at"
    if summary.spread:
        return f"spreads its weight {summary.spread}"
    if not summary.habits:
        return "looks where none of the rules tried here says"
    over = "the tokens that have one" if {"duplicate", "induction"} & {*dict(summary.habits)} else "the tokens"
    return f"puts {_shares(summary)} (mean{'s' * (len(summary.habits) > 1)} over {over})"


def row_lies_on(summary: WeightSummary, tokens: Sequence[str]) -> str:
    """Where a head's weight lies when one of these tokens asks, in the same words."""
    if summary.alone:
        return "has one token only to look at"
    place, weight = summary.strongest
    strongest = f"the most, {weight:.2f}, on {place} “{tokens[place]}”"
    if summary.spread:
        return f"spreads its weight {summary.spread}{f', {strongest}' if summary.spread == 'widely' else ''}"
    return f"puts {_shares(summary) or f'{weight:.2f} of its weight, the most, on {place} “{tokens[place]}”'}"


def _shares(summary: WeightSummary) -> str:
    return ", ".join(f"{share:.2f} of its weight on {HABIT_NAMES[name]}" for name, share in summary.habits)


def describe_pattern(pattern: np.ndarray, queries: Sequence[str], keys: Sequence[str] | None = None) -> str:
    """Where the weight goes in this picture: previous token, first token, itself, or spread out."""
    keys = queries if keys is None else keys
    pattern = np.asarray(pattern, dtype=np.float64)
    rows, columns = pattern.shape
    if columns < 2:
        return "One token can only look at itself: its weight is 1."
    offset = columns - rows
    places = np.arange(rows)
    # The first row has no choice, so it says nothing about the head.
    counted = places[(places + offset) > 0]
    habits = {
        "the token before": pattern[counted, counted + offset - 1].mean(),
        "the first token": pattern[counted, 0].mean(),
        "the token itself": pattern[counted, counted + offset].mean(),
    }
    name, weight = max(habits.items(), key=lambda item: item[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        entropies = -np.nansum(np.where(pattern > 0, pattern * np.log2(pattern), 0.0), axis=1)[counted]
    masked = not np.triu(pattern, offset + 1).any()
    possible = np.log2(counted + offset + 1 if masked else np.full(len(counted), columns))
    entropy, most, evenness = entropies.mean(), possible.mean(), (entropies / possible).mean()
    inner = pattern[counted]
    row, column = np.unravel_index(int(np.argmax(inner)), inner.shape)
    row = int(counted[row])
    strongest = (
        f" The strongest look goes from {row + offset} “{queries[row]}” to {column} “{keys[column]}” "
        f"({pattern[row, column]:.2f})."
    )
    # of few tokens each has much, so how evenly is asked first
    if spreads := spread(evenness, np.exp2(entropies - possible).mean()):
        return f"Spreads its weight {spreads} ({entropy:.1f} of at most {most:.1f} bits).{strongest}"
    if weight >= 0.4:
        return f"Mostly looks at {name}: {weight:.2f} of the weight on average.{strongest}"
    return f"No simple place has most of its weight ({entropy:.1f} of at most {most:.1f} bits).{strongest}"


def role_reason(tests: HeadTests, layer: int, head: int) -> str:
    """The numbers that made a head's role, as a sentence that can follow it."""
    role, at = tests.role(layer, head), (layer, head)

    def interval(estimate: Estimate) -> str:
        mean, margin = estimate.at(layer, head)
        return "nothing that could tell" if math.isnan(mean) else f"{mean:.2f} ± {margin:.2f}"

    if role in REPEATS:
        lost, before = interval(tests.given_up[role]), tests.untrained_given_up[role]
        return f"{lost} of its weight goes when the copy is replaced (untrained heads: at most {before:.2f})."
    if role == "followed":
        return (
            f"{interval(tests.weights['induction'])} of its weight lies there, and "
            f"{interval(tests.given_up['induction'])} of it goes when the copy is replaced."
        )
    if role in PLACES:
        before = tests.untrained[role]
        return f"{interval(tests.weights[role])} of its weight lies there (untrained heads: at most {before:.2f})."
    if role == "even":
        return f"{interval(tests.evenness)} of the most even there could be, and the model is worse without it."
    if role == "content":
        moved = interval(tests.moved)
        return f"{moved} of its weight lies elsewhere in another text, and the model is worse without it."
    place = max((*PLACES, *REPEATS), key=lambda name: np.nan_to_num(tests.weights[name].mean[at], nan=-1.0))
    mean, margin = tests.effect.at(layer, head)
    needed = f" The model needs it all the same: without it {mean:.2f} ± {margin:.2f} nats more are lost."
    return (
        f"Most of its weight on one place: {interval(tests.weights[place])} on {PLACE_NAMES[place]}. The lower end of "
        f"an interval decides. A role takes more than {MOST:.2f} on one place, or {GIVEN_UP:.2f} that goes with the "
        f"repetition; or more than {MATTERS:g} nats lost without it and, at the same time, weight that is spread "
        f"evenly (more than {EVEN:.2f}) or lies elsewhere in another text (more than {MOVED:.2f}). But for the "
        "even ones, it takes more than any untrained head has, too."
    ) + needed * tests.matters(layer, head)


# ---- one head on one prompt, answer first ----------------------------------------------------------------------------


def head_name(layer: int, head: int) -> str:
    """Layer and head in one word, both counted from 0."""
    return f"Head {layer}.{head}"


def looks_headline(layer: int, head: int, tokens: Sequence[str], row: np.ndarray) -> str:
    """Where the head looks when one token is the query, whose weights are `row` (T,)."""
    key, weight = int(np.argmax(row)), float(np.max(row))
    named = head_name(layer, head)
    if weight < LOOKS_AT:
        return f"{named} spreads its attention: at most {share(weight)} on one token."
    return f"{named} looks at {token_in_word(tokens, key)}."


LOOKS_AT = 0.4
"""Share of the weight from which a head looks at one token."""


def token_in_word(tokens: Sequence[str], place: int) -> str:
    """A token in quotation marks; of a letter, also the word that it stands in: “i” of “kite”."""
    token = tokens[place]
    if len(token) != 1 or not token.isalnum():
        return f"“{token}”"
    start, stop = place, place + 1
    while start and len(tokens[start - 1]) == 1 and tokens[start - 1].isalnum():
        start -= 1
    while stop < len(tokens) and len(tokens[stop]) == 1 and tokens[stop].isalnum():
        stop += 1
    word = "".join(tokens[start:stop])
    return f"the “{token}” of “{word}”" if len(word) > 1 else f"“{token}”"


def without_words(label: str, before: float, after: float) -> str:
    """What a prediction becomes without a head."""
    if share(before) == share(after):
        return f"Without it, “{label}” stays at {share(before)}."
    return f"Without it, “{label}” {'falls' if after < before else 'rises'} from {share(before)} to {share(after)}."


def next_words(now: float, before: float | None = None) -> str:
    """A probability, and what it was before."""
    return share(now) if before is None or share(now) == share(before) else f"{share(now)}, was {share(before)}"


def products_words(products: np.ndarray, dot: float) -> str:
    """Which of the products that sum up to q · k make up most of it, as a sentence; empty where none stands out."""
    order = np.argsort(-np.abs(products), kind="stable")
    toward = [int(i) for i in order if products[i] * dot > 0][:3]
    if not toward or not dot:
        return ""
    made = float(products[toward].sum())
    numbers = ", ".join(str(i) for i in toward)
    what = f"Number {numbers} alone adds" if len(toward) == 1 else f"Numbers {numbers} alone add"
    return f"{what} {signed(made, 2)} to q · k = {signed(dot, 2)}; there are {len(products)} products."
