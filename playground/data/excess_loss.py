"""The loss above the best possible, and which tokens carry it.

N, T = validation windows and their targets. On our languages every target has a kind, the rule that decides it, and
what the model loses beyond the exact model's own surprise is summed by kind: these sums add up to the model's loss less
the floor. Other texts have no floor: their loss is shared out by place in the word and by how frequent the word is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .baselines import NOTHING_LEFT
from .tokenizers import UNKNOWN_WORD

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
NOTHING, UNCLEAR, MOSTLY, DIVIDED, SPREAD = "nothing", "unclear", "mostly", "divided", "spread"
"""What can be said of an excess: there is none; it is too uncertain; a few parts carry more than half of it, and more
than their share of the tokens; it divides into few parts; it is spread over many."""
KINDS = (NOTHING, UNCLEAR, MOSTLY, DIVIDED, SPREAD)
CUT, EDGE = "beginnings of windows", "words at edges of windows"
FIRST, SECOND, LATER, BETWEEN = "first letters of words", "second letters", "later letters", "what stands between words"
FREQUENT, RARER, UNSEEN = "frequent words", "rarer words", "words that it has never read"


@dataclass(frozen=True)
class Partition:
    """The counted targets of some windows, each in one part."""

    names: tuple[str, ...]
    part: np.ndarray
    """(N, T) int: its part; −1 where a target does not count."""
    unavoidable: np.ndarray | None = None
    """(N, T) nats that the text's own generator loses; None where it is not known."""
    by: str = ""
    """What it goes by, where there are several ways to share out a loss."""

    def rows(self, some: np.ndarray) -> Partition:
        """The same of some windows only."""
        known = None if self.unavoidable is None else self.unavoidable[some]
        return Partition(self.names, self.part[some], known, self.by)


@dataclass(frozen=True)
class Part:
    """What one part carries."""

    name: str
    share_of_tokens: float
    nats: float
    """Its sum over the number of all tokens, so that the parts add up to what is left in all."""
    by_window: np.ndarray
    """(N,) the same per window, to tell luck from difference."""


@dataclass(frozen=True)
class ExcessLoss:
    """What a model loses beyond what it must, by part, the largest first."""

    nats: float
    """Per token, in all."""
    error: float
    """Standard error of `nats`, from the spread between windows."""
    parts: tuple[Part, ...]
    of_loss: bool
    """Whether this is the whole loss, because nobody knows what of it could be gained."""
    unit: str = "token"
    by: str = ""
    tokens: int = 0
    """On how many it was counted."""

    def kind(self) -> tuple[str, tuple[Part, ...]]:
        """NOTHING, UNCLEAR, MOSTLY, DIVIDED or SPREAD, and the parts that show it."""
        if not self.parts or not np.isfinite(self.nats):
            return UNCLEAR, ()
        if self.nats < NOTHING_LEFT or (not self.of_loss and self.nats + 2 * self.error < 4 * NOTHING_LEFT):
            return NOTHING, ()
        if not self.of_loss and self.nats < 2 * self.error:
            return UNCLEAR, ()
        largest = self._largest()
        together = sum(map(self.share, largest))
        if (
            together >= 0.5
            and all(self.share(part) > part.share_of_tokens for part in largest)
            and (together < 0.995 or len(largest) == 1)
        ):
            return MOSTLY, largest
        every = tuple(part for part in self.parts if self.share(part) >= 0.005)
        return (DIVIDED, every) if len(every) <= 3 else (SPREAD, largest)

    def share(self, part: Part) -> float:
        """Which part of the excess it carries, 0 … 1."""
        return min(max(part.nats / self.nats, 0.0), 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: what can be said, and of each part that shows it its name, share and tokens' share."""
        kind, parts = self.kind()
        shares = [[p.name, round(self.share(p), 4), round(float(p.share_of_tokens), 4)] for p in parts]
        about = {"by": self.by, "of_loss": self.of_loss, "unit": self.unit, "tokens": self.tokens}
        return {"kind": kind, "parts": shares, **about}

    def _largest(self) -> tuple[Part, ...]:
        """The fewest parts that make up half, at most three; never one whose rank is luck without the next."""
        for n in range(1, min(3, len(self.parts)) + 1):
            last, following = self.parts[n - 1], self.parts[n] if n < len(self.parts) else None
            tied = following is not None and last.nats - following.nats < 2 * _error(
                last.by_window - following.by_window
            )
            if sum(map(self.share, self.parts[:n])) >= 0.5 and not (n < 3 and tied):
                break
        return self.parts[:n]


def excess_loss(losses: np.ndarray, partition: Partition, unit: str = "token") -> ExcessLoss:
    """The excess of losses (N, T) in nats, by the parts of the partition."""
    counted = partition.part >= 0
    tokens = max(int(counted.sum()), 1)
    nats = losses if partition.unavoidable is None else losses - partition.unavoidable
    nats = np.where(counted, nats, 0.0)
    parts = []
    for number, name in enumerate(partition.names):
        within = partition.part == number
        if within.any():
            by_window = np.where(within, nats, 0.0).sum(axis=1) / tokens
            parts.append(Part(name, within.sum() / tokens, float(by_window.sum()), by_window))
    parts.sort(key=lambda part: -part.nats)
    error = _error(nats.sum(axis=1) / tokens)
    known = partition.unavoidable is not None
    return ExcessLoss(
        float(nats.sum() / tokens), error, tuple(parts), not known, unit, partition.by, int(counted.sum())
    )


def is_excess(values: Any) -> bool:
    """Whether these values, of a file, are such as `ExcessLoss.to_dict` gives."""
    if not isinstance(values, dict) or set(values) != {"kind", "parts", "by", "of_loss", "unit", "tokens"}:
        return False
    texts, parts = (values["kind"], values["by"], values["unit"]), values["parts"]
    if not all(isinstance(text, str) and len(text) < 100 for text in texts) or not isinstance(parts, list):
        return False
    if values["kind"] not in KINDS or (len(parts) == 0) != (values["kind"] in (NOTHING, UNCLEAR)) or len(parts) > 20:
        return False
    if type(values["of_loss"]) is not bool or type(values["tokens"]) is not int or values["tokens"] < 0:
        return False
    return all(
        isinstance(part, list)
        and len(part) == 3
        and isinstance(part[0], str)
        and len(part[0]) < 100
        and all(type(share) in (int, float) and 0 <= share <= 1 for share in part[1:])
        for part in parts
    )


def _error(by_window: np.ndarray) -> float:
    """Standard error of the sum over windows."""
    n = len(by_window)
    return float(np.sqrt(n) * by_window.std(ddof=1)) if n > 1 else float("inf")


# ---- parts of any text -----------------------------------------------------------------------------------------------


def words_of(text: str) -> Counter[str]:
    """How often each word occurs, in any case; a number is a word, as it is in `partitions_of_text`."""
    return Counter(word.lower() for word in _WORD.findall(text))


def partitions_of_text(
    inputs: np.ndarray, targets: np.ndarray, kind: str, token_text: Callable[[int], str], learned: Counter[str]
) -> list[Partition]:
    """Targets (N, T), negative where they do not count, by place in the word and by the word's count in `learned`,
    which comes from `words_of`.

    A tokenizer of this `kind`, whose tokens look as `token_text` says, made them; words know no place within. What
    stands before a window's first word boundary may be the rest of a word, and is in neither; the word that a window
    ends with may go on, so nobody knows how frequent it is.
    """
    frequent = _frequent(learned)
    by_place, by_count = np.full(targets.shape, -1), np.full(targets.shape, -1)
    letters, pieces = (FIRST, SECOND, LATER), ("beginnings of words", "later pieces of words")
    places = (*(letters if kind == "char" else pieces), BETWEEN, CUT)
    counts = (FREQUENT, RARER, UNSEEN, BETWEEN, EDGE)
    for row, (first, after) in enumerate(zip(inputs[:, 0].tolist(), targets)):
        pieces = [token_text(token) for token in (first, *after[after >= 0].tolist())]
        joined = (" " if kind == "word" else "").join(pieces)
        place_of = np.full(len(joined) + 1, places.index(BETWEEN))  # of characters
        count_of = np.full(len(joined) + 1, counts.index(BETWEEN))
        for word in _WORD.finditer(joined):
            within, known = slice(*word.span()), word[0].lower()
            which = FREQUENT if known in frequent else RARER if known in learned else UNSEEN
            if kind != "word" and (word.start() == 0 or word.end() >= len(joined.rstrip("'’"))):
                which = EDGE
            place_of[within] = np.minimum(np.arange(len(word[0])), len(places) - 3)
            count_of[within] = counts.index(which)
        if kind != "word":
            edge = next((i for i, c in enumerate(joined) if not c.isalnum()), len(joined))
            place_of[:edge], count_of[:edge] = places.index(CUT), counts.index(EDGE)
        starts = np.cumsum([0, *(len(piece) + (kind == "word") for piece in pieces[:-1])])
        at = starts + [len(piece) - len(piece.lstrip()) if piece.strip() else 0 for piece in pieces]
        by_place[row, after >= 0], by_count[row, after >= 0] = place_of[at[1:]], count_of[at[1:]]
        if kind == "word":
            unknown = np.array([piece == UNKNOWN_WORD for piece in pieces[1:]], dtype=bool)
            columns = np.flatnonzero(after >= 0)[unknown]
            by_place[row, columns], by_count[row, columns] = 0, counts.index(UNSEEN)
    found = [
        Partition(places, by_place, by="by place in the word"),
        Partition(counts, by_count, by="by how frequent the word is"),
    ]
    told = found[1:] if kind == "word" else found
    # a text without words, as of digits alone, has no such parts
    return [each for each in told if len(np.unique(each.part[each.part >= 0])) > 1]


def _frequent(words: Counter[str]) -> set[str]:
    """The most frequent words, which together are half of all that occur."""
    half, seen, found = words.total() / 2, 0, set()
    for word, count in words.most_common():
        if seen >= half:
            break
        found.add(word)
        seen += count
    return found
