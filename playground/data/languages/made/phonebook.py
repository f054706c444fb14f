"""phonebook: names and their numbers. No rule gives a number: it is certain only for a model that remembers it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..graph import CHANCE, Choice, Graph, Language, Mark

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
NAMES = [first + second for first in SYLLABLES for second in SYLLABLES]
ENTRIES = 400
# Powers modulo a prime look random, repeat late and are the same on every machine.
BOOK = {NAMES[pow(3, n, 3593)]: f"{pow(7, n, 997):03d}" for n in range(10, 10 + ENTRIES)}


def choices(state: Hashable) -> Iterator[Choice]:
    """Every entry on a line of its own, all equally probable."""
    for name, number in BOOK.items():
        yield 1, f"{name} {number}\n", state


NUMBER = "digits of a number"


def mark(state: Hashable, text: str) -> Iterator[Mark]:
    """The name is a random choice; its number is certain."""
    name, _ = text.split(" ")
    yield 0, len(name), CHANCE
    yield len(name) + 1, len(text) - 1, NUMBER


def broken(kind: str, word: str, possible: tuple[str, ...]) -> str:
    """Why this word cannot come here."""
    return f"the book says {possible[0]}" if kind == NUMBER and len(possible) == 1 else "no such line is in the book"


LANGUAGE = Language(
    name="phonebook",
    title="Phone book",
    note=f"{ENTRIES} names, each with a number. No rule leads to a number: the model must remember it.",
    prompt=next(iter(BOOK)),
    build=lambda: Graph("line", choices),
    right="remembered correctly",
    mark=mark,
    broken=broken,
)
