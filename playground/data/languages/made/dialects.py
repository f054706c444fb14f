"""dialects: four hidden speakers who share most words but prefer different ones. Who speaks is never written."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator

from ..graph import Choice, Graph, Language, Mark

# Each speaker's preferences over a shared vocabulary; the weights are relative.
SPEAKERS: dict[str, tuple[dict[str, float], dict[str, float], dict[str, float]]] = {
    "sailor": (
        {"the ship": 5, "the wind": 4, "the crew": 3, "the storm": 2, "the night": 1},
        {"sails": 4, "turns": 3, "waits": 2, "rises": 2, "sings": 1},
        {"at sea": 5, "in the harbor": 3, "at dawn": 2, "for days": 1},
    ),
    "cook": (
        {"the soup": 5, "the bread": 4, "the pot": 3, "the crew": 1, "the fire": 2},
        {"boils": 4, "rises": 4, "waits": 2, "burns": 2, "cools": 2},
        {"on the stove": 5, "in the oven": 3, "at dawn": 2, "for hours": 2},
    ),
    "farmer": (
        {"the field": 4, "the cow": 5, "the rain": 3, "the wind": 2, "the seed": 2},
        {"grows": 4, "waits": 2, "sleeps": 3, "turns": 1, "falls": 3},
        {"in spring": 5, "in the barn": 3, "at dawn": 2, "for days": 2},
    ),
    "singer": (
        {"the song": 5, "the night": 4, "the crowd": 3, "the voice": 3, "the fire": 1},
        {"sings": 4, "falls": 2, "rises": 2, "waits": 1, "burns": 2},
        {"on the stage": 5, "in the dark": 3, "at dawn": 1, "for hours": 2},
    ),
}
STAY = 0.8  # probability that the next sentence is the same speaker's


def choices(state: Hashable) -> Iterator[Choice]:
    """Every sentence of this speaker, then the same speaker again or one of the others."""
    (speaker,) = state
    for words in itertools.product(*(part.items() for part in SPEAKERS[speaker])):
        text = " ".join(word for word, _ in words) + ".\n"
        weight = 1.0
        for _, preference in words:
            weight *= preference
        for following in SPEAKERS:
            moves = STAY if following == speaker else (1 - STAY) / (len(SPEAKERS) - 1)
            yield weight * moves, text, (following,)


SUBJECT, VERB, WHERE = "who or what does it", "what it does", "where or when"


def mark(state: Hashable, text: str) -> Iterator[Mark]:
    """Mark the subject, which depends on who spoke before, and verb and place, which depend on who may be speaking."""
    words = text.split(" ")
    verb = len(" ".join(words[:2])) + 1
    where = verb + len(words[2]) + 1
    yield 0, verb - 1, SUBJECT
    yield verb, where - 1, VERB
    yield where, len(text) - 2, WHERE


def broken(kind: str, word: str, possible: tuple[str, ...]) -> str:
    """Why this word cannot come here."""
    if kind == SUBJECT:
        return "no sentence begins like this"
    if kind in (VERB, WHERE):
        return f"“{word}” does not fit the words before it"
    return f"expected “{'” or “'.join(possible)}”" if possible else "the sentence must continue differently"


LANGUAGE = Language(
    name="dialects",
    title="Dialects",
    note="Four hidden speakers take turns: the model must guess who is speaking to guess the next word.",
    prompt="the ship sails at dawn.\nthe wind",  # the line before gives away whose wind it is
    build=lambda: Graph(("sailor",), choices),
    units=("sentence", "sentences"),
    right="consistent with one speaker",
    spelled=True,
    mark=mark,
    broken=broken,
)
