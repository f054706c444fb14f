"""copy: a random string, then the same again. The second half is certain for whoever can look back."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator

from ..graph import Choice, Graph, Language

LETTERS = "abcdefgh"
LENGTHS = (3, 4)


def choices(state: Hashable) -> Iterator[Choice]:
    """Every string of each length, twice on one line; all lengths are equally probable."""
    for length in LENGTHS:
        for letters in itertools.product(LETTERS, repeat=length):
            word = "".join(letters)
            yield len(LETTERS) ** -length, f"{word} {word}\n", state


LANGUAGE = Language(
    name="copy",
    title="Copy",
    note="Random strings, each written twice: learned by heads that find what followed last time (induction).",
    prompt="cage c",
    build=lambda: Graph("line", choices),
)
