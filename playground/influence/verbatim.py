"""Verbatim matches: the longest pieces of a text that occur word for word in a training text, and where.

A suffix array sorts all places of the training text by the text that follows them, so binary search finds each piece
(Manber and Myers 1993). Prefix doubling builds it: places sorted by h symbols get ranks, and two ranks sort them by 2h
symbols. Only places that are still equal are sorted again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

SOURCES = 3
"""Places of a match that are named."""
SAME = 0.05
"""Shares of copied text that differ by less are as good as the same."""
FREQUENT = 100
"""No single passage explains a piece that occurs so often: each is at most 1 % of its occurrences."""
LONG = 30
"""Characters in a row that also occur in the learned text: this many or more count as copied."""
PIECES, BESIDE = 8, 4000
"""Pieces of a held-out text that a text is compared with, and characters that they have together at most."""
WORDS = 5
"""A text shorter than LONG counts as copied if it has so many words, with its beginning, and all of it occurs."""


@dataclass(frozen=True)
class Match:
    """A piece of a text that occurs in the training text."""

    start: int
    end: int
    """Its characters in the text."""
    count: int
    """How often it occurs there."""
    sources: tuple[int, ...]
    """Its first characters there, for some of these."""


@dataclass(frozen=True)
class Copied:
    """How much of a text is copied."""

    matches: tuple[Match, ...]
    """Each as long as possible, none within another; in their order."""
    share: float
    """0 … 1: characters within matches."""
    usual: float | None
    """The same for pieces of held-out text of the same length; None where there is no such piece."""

    @property
    def whole(self) -> bool:
        """Whether all of the text is one such piece."""
        return self.share == 1.0 and len(self.matches) == 1

    @property
    def unusual(self) -> bool:
        """Whether clearly more is copied than in held-out text, if there is any."""
        return self.share > (self.usual or 0.0) + SAME

    def explains(self, match: Match | None) -> bool:
        """Whether this piece was learned by heart: it is rare, and held-out text has fewer such pieces."""
        return match is not None and match.count < FREQUENT and self.unusual


class SuffixArray:
    """The places of a text, sorted by the text that follows them."""

    def __init__(self, text: str):
        self.text = text
        _, symbols = np.unique(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4"), return_inverse=True)
        self.order = _sorted_places(symbols + 1, 8 if symbols.max() < 255 else 2)  # 0 is the end

    @property
    def nbytes(self) -> int:
        """About how much room it takes."""
        return self.order.nbytes + 2 * len(self.text)

    def range_of(self, piece: str) -> tuple[int, int]:
        """The places of `order` (first, one after the last) at which the piece begins."""
        begins = lambda i: self.text[i : i + len(piece)]  # noqa: E731
        first = bisect_left(self.order, piece, key=begins)
        return first, bisect_right(self.order, piece, lo=first, key=begins)

    def longest(self, text: str) -> list[int]:
        """For each character of a text, how many characters from there on occur somewhere in a row."""
        most, found = 0, []
        for start in range(len(text)):
            most = max(most - 1, 0)  # the match before, without its first character, occurs too
            rest = text[start:]
            at = bisect_left(self.order, rest, key=lambda i: self.text[i : i + len(rest)])
            for place in self.order[max(at - 1, 0) : at + 1].tolist():
                while most < len(rest) and self.text.startswith(rest[: most + 1], place):
                    most += 1
            found.append(most)
        return found


def _sorted_places(numbers: np.ndarray, packed: int) -> np.ndarray:
    """The places of symbols (n,), all above 0, sorted by what follows them; `packed` symbols fit 64 bits."""
    n, bits = len(numbers), 64 // packed
    keys = np.zeros(n, dtype=np.uint64)
    for i in range(min(packed, n)):
        keys[: n - i] |= numbers[i:].astype(np.uint64) << np.uint64(64 - bits * (i + 1))
    kind = np.int32 if n < 2**31 - 1 else np.int64
    order = np.argsort(keys, kind="stable").astype(kind)
    new = np.empty(n, dtype=bool)  # whether a place of the order begins a new group
    new[:1], new[1:] = True, keys[order[1:]] != keys[order[:-1]]
    del keys
    rank = np.empty(n, dtype=kind)
    rank[order] = np.maximum.accumulate(np.where(new, np.arange(n), 0))
    h = packed
    while True:
        alone = new & np.append(new[1:], True)
        rest = np.flatnonzero(~alone)
        if not len(rest):
            return order
        places = order[rest]
        after = places + h
        second = np.where(after < n, rank[np.minimum(after, n - 1)] + 1, 0).astype(np.uint64)
        pairs = (rank[places].astype(np.uint64) << np.uint64(32)) | second
        by = np.argsort(pairs, kind="stable")
        order[rest], pairs = places[by], pairs[by]
        begins = np.empty(len(rest), dtype=bool)
        begins[:1], begins[1:] = True, pairs[1:] != pairs[:-1]
        new[rest] = begins
        rank[order[rest]] = np.maximum.accumulate(np.where(begins, rest, 0))
        h *= 2


def matches(index: SuffixArray, text: str, least: int = LONG) -> Iterator[Match]:
    """The longest pieces of the text that also occur in the training text, if they have at least `least` characters."""
    end = 0
    for start, length in enumerate(index.longest(text)):
        if length < least or start + length <= end:
            continue
        end = start + length
        first, last = index.range_of(text[start:end])
        sources = sorted(index.order[first : min(first + SOURCES, last)].tolist())
        yield Match(start, end, last - first, tuple(sources))


def share_of(found: tuple[Match, ...], length: int) -> float:
    """Which part of so many characters lies within matches."""
    copied, done = 0, 0
    for match in found:
        copied += match.end - max(match.start, done)
        done = match.end
    return copied / max(length, 1)


def copied(index: SuffixArray, text: str, held_out: str = "", least: int = LONG, begun: str = "") -> Copied:
    """How much of a text is copied, and how much of the held-out text in pieces of the same length.

    A text shorter than `least` is copied if all of it occurs after `begun`.
    """
    lead = 0
    if len(text) < least and len((begun + text).split()) >= WORDS:
        lead, text = len(begun), begun + text
        least = len(text)
    found, length, usual = tuple(matches(index, text, least)), len(text), None
    share = share_of(found, length)
    if least <= length <= len(held_out):
        pieces = max(min(PIECES, len(held_out) // length, BESIDE // length), 1)
        starts = np.linspace(0, len(held_out) - length, pieces).astype(int).tolist()
        shares = [share_of(tuple(matches(index, held_out[at : at + length], least)), length) for at in starts]
        usual = float(np.mean(shares))
    found = (replace(each, end=each.end - lead, sources=tuple(at + lead for at in each.sources)) for each in found)
    return Copied(tuple(found), share, usual)
