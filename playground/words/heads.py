"""Heads: where their weight is, what their roles are, and the numbers behind a role."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..inspection.edits import Edit, SwitchOff
from ..inspection.heads import EVEN
from ..inspection.roles import GIVEN_UP, MATTERS, MOST, MOVED, Estimate, HeadTests
from .numbers import estimate, share
from .result import Result

HABIT_NAMES = {
    "previous": "the token before",
    "duplicate": "an earlier copy of the token",
    "induction": "the token after an earlier copy",
    "first": "the first token",
    "itself": "the token itself",
}
"""Of `inspection.heads.HABITS`: where a head may put its weight."""
ROLE_NAMES = {
    "induction": "attends to the token after an earlier copy (induction)",
    "duplicate": "attends to an earlier copy of the token",
    "followed": "attends to the token after an earlier copy, but finds it by position",
    "previous": "attends to the token before",
    "first": "attends to the first token (sink)",
    "itself": "attends to the token itself",
    "even": "spreads its attention evenly",
    "content": "chooses tokens by content, not by position",
    "unclear": "has no clear role",
}
"""Of `inspection.roles.ROLES`."""
CRITERIA = (
    f"A head gets a role if more than {MOST:.2f} of its weight is on one kind of token. It also gets one if its "
    f"weight falls by over {GIVEN_UP:.2f} when a token's earlier copy is replaced. Two more roles are even attention "
    f"(above {EVEN:.2f}) and weight that shifts with the text (above {MOVED:.2f}). For these two, the loss must also "
    f"rise by over {MATTERS:g} without the head. The lower end of an interval must exceed each limit. "
    "Except for even attention, the head must also score above all heads of an untrained model."
)


def interval(measured: Estimate, at: tuple[int, int], digits: int = 2) -> str:
    """One head's measurement with its 95 % interval; a dash if there was nothing to measure."""
    mean, margin = measured.at(*at)
    return "–" if math.isnan(mean) else estimate(mean, margin, digits)


def effect_or_noise(measured: Estimate, at: tuple[int, int], digits: int = 2) -> str:
    """An effect with its interval, or words for one that may be zero."""
    return interval(measured, at, digits) if measured.is_clear(*at) else "no clear effect"


def roles_counted(tests: HeadTests) -> Result:
    """How many heads have a clear role."""
    roles = [role for row in tests.roles for role in row]
    clear = len(roles) - roles.count("unclear")
    return Result(f"{clear or 'None'} of {len(roles)} heads {'has' if clear < 2 else 'have'} a clear role.")


def role_words(role: str) -> str:
    """A role as a table says it."""
    return ROLE_NAMES[role][0].upper() + ROLE_NAMES[role][1:]


# ---- one head on one prompt, answer first ----------------------------------------------------------------------------


def head_name(layer: int, head: int) -> str:
    """Layer and head in one word, both counted from 0."""
    return f"Head {layer}.{head}"


NAMED = 0.01
"""Nats from which a head's small picture has a number."""
NUMBERS = "Numbers: how many nats the prediction changes by without the head."


def grid_title(layer: int, head: int, effect: float | None) -> str:
    """The name of a head's small picture, with its effect in nats where that is known and not close to none."""
    name = head_name(layer, head).lower()
    return f"{name}: {effect:.2g}" if effect and effect >= NAMED else name


def attends_headline(layer: int, head: int, tokens: Sequence[str], row: np.ndarray) -> str:
    """Which token the head attends to; `row` (T,) are the weights of one query."""
    key, weight = int(np.argmax(row)), float(np.max(row))
    named = head_name(layer, head)
    if weight < ATTENDS:
        return f"{named} spreads its attention: at most {share(weight)} on one token."
    return f"{named} attends to {token_in_word(tokens, key)}."


ATTENDS = 0.4
"""Share of the weight from which a head attends to one token."""


def token_in_word(tokens: Sequence[str], place: int) -> str:
    """A token in quotation marks; a letter also names its word: “i” of “kite”."""
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


def without_words(label: str, before: float, after: float, place: str = "") -> str:
    """What a prediction becomes without a head; `place` names the token that it follows, where that is not the last."""
    begun = f"{f'After token {place}, without' if place else 'Without'} this head, the probability of “{label}”"
    if share(before) == share(after) or abs(after - before) < 0.001:
        return f"{begun} stays at {share(after)}."
    return f"{begun} {'falls' if after < before else 'rises'} from {share(before)} to {share(after)}."


def edited_headline(edits: Sequence[Edit], now: Mapping[str, float]) -> str:
    """What comes next with edits; `now` are probabilities by token."""
    said = ", ".join(f"“{label}” {share(value)}" for label, value in now.items())
    match list(edits):
        case [SwitchOff(layer, "head", int(head))]:
            return f"{head_name(layer, head)} is off: {said}."
    return f"Edited: {said}."


def unedited_words(label: str, before: float, place: str = "") -> str:
    """What was most probable with the head on, and what stays; `place` as in `without_words`."""
    begun = f"After token {place}, unedited" if place else "Unedited"
    return f"{begun}: “{label}” {share(before)}. It still attends as shown below, but its output is switched off."


def next_words(now: float, before: float | None = None) -> str:
    """A probability, and what it was before."""
    return share(now) if before is None or share(now) == share(before) else f"{share(now)}, was {share(before)}"


def cell_words(tokens: Sequence[str], query: int, key: int, weight: float) -> str:
    """The weight of one cell of a pattern, and between which tokens it is."""
    return f"Framed: {weight:.4f}, from token {query} “{tokens[query]}” to token {key} “{tokens[key]}”."


def weight_words(r: Any, tokens: Sequence[str]) -> str:
    """How much of its weight a token gives another, and the component that contributes most to the sign of q · k.

    `r` is a receipt, of which `query`, `key`, `weight`, `products` and `visible` are read.
    """
    query, key = tokens[r.query], tokens[r.key]
    if not r.visible:
        return f"“{query}” gives “{key}” nothing: the causal mask hides it."
    dot = float(r.products.sum())
    how, most = "raises" if dot >= 0 else "lowers", int(np.argmax(r.products * np.sign(dot)))
    return f"“{query}” gives “{key}” {share(r.weight)} of its weight. Component {most} {how} q · k most."
