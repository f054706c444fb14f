"""copy: a random string, then the same again. The second half is certain for anyone who can look back."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator

from ..graph import CHANCE, Choice, Graph, Language, Mark

LETTERS = "abcdefgh"
LENGTHS = (3, 4)


def choices(state: Hashable) -> Iterator[Choice]:
    """Every string of each length, twice on one line; all lengths are equally probable."""
    for length in LENGTHS:
        for letters in itertools.product(LETTERS, repeat=length):
            word = "".join(letters)
            yield len(LETTERS) ** -length, f"{word} {word}\n", state


COPIED = "copied letters"


def mark(state: Hashable, text: str) -> Iterator[Mark]:
    """The first word and its length are random choices; the second word is certain."""
    half = len(text) // 2  # after the space: where the space stands is a choice, too
    yield 0, half, CHANCE
    yield half, len(text), COPIED


def broken(kind: str, word: str, possible: tuple[str, ...]) -> str:
    """Why this word cannot come here."""
    if kind == COPIED and len(possible) == 1 and possible[0] != "\n":
        return f"the copy of {possible[0]} is {possible[0]}"
    if possible == ("\n",):
        return "the line is over after two words"
    return f"a line begins with {LENGTHS[0]} to {LENGTHS[-1]} letters from {LETTERS[0]} to {LETTERS[-1]}"


LANGUAGE = Language(
    name="copy",
    title="Copy",
    note="Random strings, each written twice. Heads learn to copy by letters (induction) or by position.",
    prompt="cage c",
    build=lambda: Graph("line", choices),
    right="copied correctly",
    mark=mark,
    broken=broken,
)
