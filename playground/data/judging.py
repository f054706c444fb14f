"""Judging: how good a written text is. Texts in our languages are parsed; others are compared with the text learned.

A loss is a mean over tokens; a sum with one wrong digit is wrong. So whole sums, stories and lines are counted, with
an interval for so few of them (Wilson 1927).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .languages import Language
from .languages.grammar import Fault, grammar_of

MOST = 20_000
"""How many characters of a text are judged, from its beginning."""
WORDED = 0.8
"""A text is made of words if letters are at least this share of it, not counting blanks."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class Share:
    """How many out of how many are right, and an interval for that share."""

    right: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """The shares that these counts do not rule out, at 95 % (Wilson 1927); 0 … 1 if nothing was counted."""
        if not self.of:
            return 0.0, 1.0
        z, n, share = 1.959964, self.of, self.right / self.of
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return max(middle - half, 0.0), min(middle + half, 1.0)

    def __add__(self, other: Share) -> Share:
        return Share(self.right + other.right, self.of + other.of)


@dataclass(frozen=True)
class ParsedText:
    """A text of one of our languages, parsed."""

    language: str
    share: Share
    """How many whole sums, stories or lines are without a mistake."""
    faults: tuple[Fault, ...]
    """Each line's first word that cannot come where it does, even in an incomplete last line; places in characters."""
    begun_with: Fault | None = None
    """The mistake because of which the first sum, story or line is not judged: the given beginning made it."""
    foreign: bool = False
    """Whether the given beginning has letters that the language does not have."""

    @property
    def fault(self) -> Fault | None:
        """The text's very first mistake."""
        return self.faults[0] if self.faults else None


def judge(language: Language, text: str, begun: str = "\n", *, spaced: bool = True) -> ParsedText:
    """Judge by a language's grammar a text that continues from `begun`, which itself is not judged.

    The text up to its first line break counts together with the last line of `begun`, if that line is possible in the
    language. A text that continues from nothing may begin in the middle of a line; that line is not judged. `spaced`:
    whether the space between words counts.
    """
    right, of = 0, 0
    faults: list[Fault] = []
    begun_with: Fault | None = None
    text, nowhere = text[:MOST], not begun
    begun = begun[begun.rfind("\n") + 1 :]
    for reading in grammar_of(language).read(begun + text, spaced=spaced):
        fault = reading.fault
        if nowhere and reading.start == 0:
            continue
        if fault is not None and fault.end <= len(begun):
            begun_with = fault
            continue  # a mistake in the given beginning
        if reading.whole and (fault or reading.end - reading.start > 1):  # an empty line is no achievement
            right, of = right + (fault is None), of + 1
        if fault is not None:
            start, end = max(fault.start - len(begun), 0), fault.end - len(begun)
            faults.append(fault._replace(start=start, end=end))
    foreign = begun_with is not None and bool(set(begun) - set("".join(language.graph.texts)))
    return ParsedText(language.name, Share(right, of), tuple(faults), begun_with, foreign)


@dataclass(frozen=True)
class Compared:
    """A text compared with the text that its writer learned from."""

    words: Share
    """How many of its words occur in the text learned."""
    strange: tuple[tuple[int, int], ...]
    """(start, end) of each word that does not occur there."""
    sentences: Share
    """How many of its whole sentences occur there unchanged, if the text learned is a list of sentences."""


def without_divided_word(before: str, after: str) -> tuple[str, str]:
    """The two parts of one text, without the word that the cut divides; unchanged if it divides none.

    >>> without_divided_word("the n", "eedles fall")
    ('the ', ' fall')
    """
    around, cut = before[-MOST:] + after[:MOST], len(before[-MOST:])
    for word in _WORD.finditer(around):
        if word.start() < cut < word.end():
            return before[: len(before) - (cut - word.start())], after[word.end() - cut :]
    return before, after


class LearnedText:
    """A text that a model learned from, ready to be compared with others. Case does not matter.

    `held_out` is another text by the same author. `divided`: it continues where the learned text ends, perhaps within
    a word; a word cut in two counts for neither. `sentences` are those of a text of single sentences, `ends` the mark
    after each. `further`: the model had learned another text before.
    """

    def __init__(
        self, text: str, held_out: str = "", *, divided: bool = False, sentences: Iterable[str] = (), ends: str = "",
        further: bool = False,
    ):  # fmt: skip
        self.text, self.ends, self.further = text, ends, further
        self.sentences = frozenset(map(_regular, sentences))
        before, held_out = without_divided_word(text, held_out) if divided else (text, held_out)
        self.words = Counter(word.lower() for word in _WORD.findall(before))
        letters, written = sum(len(word) * n for word, n in self.words.items()), sum(map(len, before.split()))
        self.worded = letters >= WORDED * written > 0
        """Whether the text is made of words: a table of numbers or code is not."""
        self.held_out = held_out

    @property
    def nbytes(self) -> int:
        """Rough bytes in memory."""
        return len(self.text) + len(self.held_out) + 100 * len(self.words)

    def compare(self, text: str, begun: str = "") -> Compared:
        """What a text that continues from `begun` has in common with this one. Cut words at its ends do not count."""
        text = text[:MOST]
        within, strange = Share(0, 0), []
        inside = bool(begun) and begun[-1].isalnum()
        for word in _WORD.finditer(text):
            if word.end() == len(text) or (inside and word.start() == 0):
                continue
            known = word[0].lower() in self.words
            within += Share(known, 1)
            if not known:
                strange.append(word.span())
        return Compared(within, tuple(strange), self._sentences(begun, text))

    def _sentences(self, begun: str, text: str) -> Share:
        """Of the sentences that end in a text, how many are copies of learned ones; 0 of 0 without sentences."""
        if not self.sentences:
            return Share(0, 0)
        begun = begun[begun.rfind(self.ends) + len(self.ends) :]
        whole = [_regular(sentence) for sentence in f"{begun}{text}".split(self.ends)[:-1]]
        found = [sentence in self.sentences for sentence in whole if sentence]
        return Share(sum(found), len(found))


def _regular(sentence: str) -> str:
    return " ".join(sentence.split())
