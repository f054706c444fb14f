"""brackets: nested pairs of three kinds. The closing bracket is certain; a model must keep a stack."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..graph import CHANCE, Choice, Graph, Language, Mark

PAIRS = {"(": ")", "[": "]", "{": "}"}
MAX_DEPTH = 5


def choices(stack: Hashable) -> Iterator[Choice]:
    """Open another bracket, or close the innermost; at depth 0 the line may end."""
    if len(stack) < MAX_DEPTH:
        for opening in PAIRS:
            yield 1, opening, stack + opening
    if stack:
        yield 3, PAIRS[stack[-1]], stack[:-1]
    else:
        yield 1.5, "\n", ""


CLOSING, END = "closing brackets", "ends of lines"


def mark(stack: Hashable, text: str) -> Iterator[Mark]:
    """Which bracket opens is a random choice; which one closes is certain."""
    yield 0, 1, CLOSING if text in PAIRS.values() else CHANCE if text in PAIRS else END


def broken(kind: str, word: str, possible: tuple[str, ...]) -> str:
    """Why this word cannot occur here."""
    closing = [each for each in possible if each in PAIRS.values()]
    if word in PAIRS:
        return (
            f"no more than {MAX_DEPTH} may be open: {closing[0]} has to close first" if closing else "a line was over"
        )
    if not closing:
        return "nothing is open that it could close"
    return f"{closing[0]} has to close first" + (", before the line may end" if word == "\n" else "")


LANGUAGE = Language(
    name="brackets",
    title="Brackets",
    note="Nested brackets of three kinds: each closing one must match the last that is still open.",
    prompt="([",
    build=lambda: Graph("", choices),
    right="with every bracket closed",
    mark=mark,
    broken=broken,
)
