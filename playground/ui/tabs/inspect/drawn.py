"""Token window: the part of a long prompt that a picture shows, and the sentence that says so."""

from __future__ import annotations

from typing import Any

from ....inspection import Look
from ...clicks import cell_of

MOST_TOKENS = 64
"""Tokens that a map of token against token shows at most."""
MOST_GUESSES = 28
"""Tokens that a map with a word in every cell shows at most."""
MOST_HEADS = 32
"""Heads shown as small pictures at most."""


def window(length: int, query: int, most: int = MOST_TOKENS) -> slice:
    """The tokens to show: all up to `most`, else `most` around the query.

    The part shown moves by half of `most` at a time, so that it stays put after most clicks.
    """
    if length <= most:
        return slice(0, length)
    stride = most // 2
    start = min(max(query // stride - 1, 0) * stride, length - most)
    return slice(start, start + most)


def window_words(look: Look, part: slice) -> str:
    """A sentence where not everything is shown, else nothing."""
    count = part.stop - part.start
    if count == look.length:
        return ""
    side = "first" if not part.start else "last" if part.stop == look.length else ""
    which = f"the {side} {count} of {look.length:,} tokens" if side else f"tokens {part.start} to {part.stop - 1}"
    return f" Shown: {which}."


def clicked_cell(click: dict[str, Any], part: slice) -> dict[str, Any]:
    """The query and the key that a click in a map of these tokens chooses. Raises ValueError."""
    count = part.stop - part.start
    query, key = cell_of(click, rows=count, columns=count)
    return {"query": part.start + query, "key": part.start + key}


def cell(part: slice, query: int, key: int) -> tuple[int, int] | None:
    """Row and column of a cell in what is shown; None outside."""
    inside = part.start <= query < part.stop and part.start <= key < part.stop
    return (query - part.start, key - part.start) if inside else None
