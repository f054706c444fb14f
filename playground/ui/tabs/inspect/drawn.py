"""What of a long prompt is drawn: a window of tokens around the place looked at, and the sentence that says so."""

from __future__ import annotations

from ....inspection import Look

MOST_TOKENS = 64
"""Tokens that a picture of token against token draws at most."""
MOST_GUESSES = 28
"""Tokens that a picture with a word in every cell draws at most."""
MOST_HEADS = 32
"""Heads drawn as small pictures at most; the others are in the map of all heads."""


def window(length: int, query: int, most: int = MOST_TOKENS) -> slice:
    """The tokens drawn: all up to `most`, else that many that hold the query, moved by half so that clicks stay put."""
    if length <= most:
        return slice(0, length)
    stride = most // 2
    start = min(max(query // stride - 1, 0) * stride, length - most)
    return slice(start, start + most)


def window_words(look: Look, part: slice) -> str:
    """A sentence where not everything is drawn, else nothing."""
    if part.stop - part.start == look.length:
        return ""
    return f" Drawn: tokens {part.start} to {part.stop - 1} of {look.length:,}; choose a token outside to move there."


def cell(part: slice, query: int, key: int) -> tuple[int, int] | None:
    """Row and column of a cell in what is drawn; None outside."""
    inside = part.start <= query < part.stop and part.start <= key < part.stop
    return (query - part.start, key - part.start) if inside else None
