"""addition: sums of two numbers below a hundred. The digits after = are certain for anyone who can add."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..graph import CHANCE, Choice, Graph, Language, Mark


def choices(state: Hashable) -> Iterator[Choice]:
    """Every sum of two numbers from 0 to 99, equally probable."""
    for a in range(100):
        for b in range(100):
            yield 1, f"{a}+{b}={a + b}\n", state


DIGITS = ("the last digit of a sum", "the digit before the last", "the first of three digits")


def mark(state: Hashable, text: str) -> Iterator[Mark]:
    """Mark the two numbers, which are chance, and each digit after =, which is certain."""
    plus, equals, end = text.index("+"), text.index("="), len(text) - 1
    yield 0, plus, CHANCE
    yield plus + 1, equals, CHANCE
    for place, digit in enumerate(range(end - 1, equals, -1)):
        yield digit, digit + 1, DIGITS[place]


def broken(kind: str, word: str, possible: tuple[str, ...]) -> str:
    """Why this word cannot occur here."""
    if kind in DIGITS or (kind == "ends of words or numbers" and len(possible) == 1 and word.isdigit()):
        return f"the sum is {possible[0]}" if len(possible) == 1 else "no such sum"
    if kind == CHANCE:
        return "expected a number from 0 to 99"
    return f"expected {' or '.join(map(_shown, possible))}" if possible else "a sum has the form a+b=c"


def _shown(word: str) -> str:
    return "a line break" if word == "\n" else word


LANGUAGE = Language(
    name="addition",
    title="Addition",
    note="Sums of two numbers below 100. The digits before = are chance; the sum is certain.",
    prompt="12+34=",
    build=lambda: Graph("sum", choices),
    units=("sum", "sums"),
    mark=mark,
    broken=broken,
)
