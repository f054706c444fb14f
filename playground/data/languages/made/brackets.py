"""brackets: nested pairs of three kinds. What closes is certain; a model must keep a stack."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..graph import Choice, Graph, Language

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


LANGUAGE = Language(
    name="brackets",
    title="Brackets",
    note="Nested brackets of three kinds: each closing one must match the last that is still open.",
    prompt="([",
    build=lambda: Graph("", choices),
)
