"""Judging: what a written text is worth. Those of our languages are parsed, others are held against the text learned.

A loss is a mean over tokens; a sum with one wrong digit is wrong. So whole sums, stories and lines are counted, with
the interval that so few of them leave (Wilson 1927).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from .languages import Language
from .languages.grammar import Fault, grammar_of

LONG = 30
"""Characters in a row that stand in the learned text word for word: from there on they are called copied."""
FEW = 100
"""Words below which their number stands beside a share of them."""
BESIDE = 600
"""Characters of a held-out text that are looked for, too, which takes half a millisecond each in a million."""
MOST = 20_000
"""Characters of a text that are judged, from its beginning."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LENGTHS = ((1, 3), (4, 6), (7, math.inf))


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    right: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """The shares that these counts do not rule out, at 95 % (Wilson 1927); 0 … 1 where nothing was counted."""
        if not self.of:
            return 0.0, 1.0
        z, n, share = 1.959964, self.of, self.right / self.of
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return max(middle - half, 0.0), min(middle + half, 1.0)

    def in_words(self) -> str:
        """As "6 of 13 (22 to 70 %)"."""
        low, high = self.interval
        return f"{self.right:,} of {self.of:,} ({_percent(low)} to {_percent(high)} %)"

    def __add__(self, other: Share) -> Share:
        return Share(self.right + other.right, self.of + other.of)


def right_in_words(language: Language, share: Share) -> str:
    """As "sums right: 6 of 13 (22 to 70 %)"."""
    return f"{language.judged}: {share.in_words()}"


@dataclass(frozen=True)
class Judged:
    """A text of one of our languages, parsed."""

    language: str
    share: Share
    """Whole sums, stories or lines: how many are without a mistake."""
    fault: Fault | None
    """The first word that cannot stand where it does, in a cut last one too; its characters count in the text."""
    unjudged: str = ""
    """Why the first sum, story or line is not judged, where that is so."""

    def in_words(self) -> str:
        """One sentence, and what is wrong first."""
        from .languages import LANGUAGES

        language = LANGUAGES[self.language]
        words = f"{right_in_words(language, self.share).capitalize()}." if self.share.of else ""
        if self.unjudged:
            words = f"{words} Its first {language.units[0]} is not judged: {self.unjudged}.".strip()
        elif not words:
            words = f"No whole {language.units[0]} yet."
        if self.fault is not None:
            shown = self.fault.word if self.fault.word != "\n" else "line break"
            words += f" The first mistake, “{shown}”: {self.fault.rule}."
        return words


def judge(language: Language, text: str, begun: str = "\n", *, spaced: bool = True) -> Judged:
    """What a text of this language is worth that goes on from `begun`, which is not judged.

    What stands before the text's first line break counts together with the end of `begun` that belongs to it, if that
    can stand in the language at all. A text that goes on from nothing may begin in the middle of a line, which is not
    judged. `spaced`: whether the space between words counts.
    """
    right, of, unjudged = 0, 0, ""
    first: Fault | None = None
    text, nowhere = text[:MOST], not begun
    begun = begun[begun.rfind("\n") + 1 :]
    for reading in grammar_of(language).read(begun + text, spaced=spaced):
        fault = reading.fault
        if nowhere and reading.start == 0:
            continue
        if fault is not None and fault.end <= len(begun):
            unjudged = f"what it goes on from has a mistake, “{fault.word}”: {fault.rule}"
            if set(begun) - set("".join(language.graph.texts)):
                unjudged = "it holds letters that the language does not have"
            continue  # the mistake of whoever wrote the beginning
        if reading.whole and (fault or reading.end - reading.start > 1):  # an empty line is no achievement
            right, of = right + (fault is None), of + 1
        if fault is not None and first is None:
            start, end = max(fault.start - len(begun), 0), fault.end - len(begun)
            first = fault._replace(start=start, end=end)
    return Judged(language.name, Share(right, of), first, unjudged)


@dataclass(frozen=True)
class Compared:
    """A text held against the text that its writer learned from."""

    words: Share
    """Words that occur there."""
    usual: Share
    """Of the words of a text by the same hand that was held out, those that do."""
    by_length: tuple[tuple[str, Share], ...]
    """The same for words of 1–3, 4–6 and 7 or more letters, where there are any."""
    copied: Share
    """Characters that stand there word for word in a row of at least LONG; none of none where no row can be as long."""
    strange: tuple[tuple[int, int], ...]
    """(start, end) of the words that do not occur there."""
    sentences: Share = Share(0, 0)
    """Of its whole sentences, those that stand there as they are, where the text learned is a list of sentences."""
    usual_copied: Share = Share(0, 0)
    """`copied` of a text by the same hand that was held out."""

    def in_words(self) -> str:
        """One or two sentences."""
        if not self.words.of:
            return "No whole word yet."
        words = f"Words that occur in the text learned: {self.words.in_words()}"
        words += "".join(f"; with {name} letters {s.right:,} of {s.of:,}" for name, s in self.by_length)
        if self.usual.of:
            few = f" ({self.usual.right} of {self.usual.of})" if self.usual.of < FEW else ""
            words += f"; of held-out text {100 * self.usual.right / self.usual.of:.0f} %{few}"
        return f"{words}. {self.copied_in_words()}".strip()

    def copied_in_words(self) -> str:
        """How much of it is no writing of its own; empty where that cannot be told."""
        right, of = self.sentences.right, self.sentences.of
        if of == 1:
            return f"Its one whole sentence {'stands' if right else 'does not stand'} in the text learned as it is."
        if of:
            stand = "stands in the text learned as it is" if right == 1 else "stand in the text learned as they are"
            return f"{right:,} of {of:,} sentences {stand}."
        if not self.copied.of:
            return ""
        share = _percent(self.copied.right / self.copied.of)
        words = f"{share} % is copied word for word, {LONG} characters or more in a row"
        if self.usual_copied.of:
            words += f"; of held-out text {_percent(self.usual_copied.right / self.usual_copied.of)} %"
        return f"{words}."


def without_divided_word(before: str, after: str) -> tuple[str, str]:
    """Two parts of one text without the word through which the cut between them goes; as they are where there is none.

    >>> without_divided_word("the n", "eedles fall")
    ('the ', ' fall')
    """
    around, cut = before[-MOST:] + after[:MOST], len(before[-MOST:])
    for word in _WORD.finditer(around):
        if word.start() < cut < word.end():
            return before[: len(before) - (cut - word.start())], after[word.end() - cut :]
    return before, after


class Learned:
    """A text that a model learned from, ready to hold others against. Words count in any case, as letters.

    `held_out` is by the same hand; `divided` says that it goes on where the text learned ends, perhaps within a word,
    which is no word of either. A text of single `sentences` names them, and the mark that `ends` each.
    """

    def __init__(
        self, text: str, held_out: str = "", *, divided: bool = False, sentences: Iterable[str] = (), ends: str = ""
    ):
        self.text, self.ends = text, ends
        self.sentences = frozenset(map(_regular, sentences))
        before, held_out = without_divided_word(text, held_out) if divided else (text, held_out)
        self.words = Counter(word.lower() for word in _WORD.findall(before))
        known = [word.lower() in self.words for word in _WORD.findall(held_out)]
        self.usual = Share(sum(known), len(known))
        self._held_out = held_out[:BESIDE]

    @cached_property
    def usual_copied(self) -> Share:
        """How much of a held-out text stands there word for word: what any text by this hand would have."""
        return self._copying(self._held_out)

    @property
    def nbytes(self) -> int:
        """About how much room it takes."""
        return len(self.text) + 100 * len(self.words)

    def compare(self, text: str, begun: str = "") -> Compared:
        """What a text that goes on from `begun` has of this one. Cut words at its ends do not count."""
        text = text[:MOST]
        within, by_length, strange = Share(0, 0), dict.fromkeys(_LENGTHS, Share(0, 0)), []
        inside = bool(begun) and begun[-1].isalnum()
        for word in _WORD.finditer(text):
            if word.end() == len(text) or (inside and word.start() == 0):
                continue
            known = word[0].lower() in self.words
            within += Share(known, 1)
            bounds = next(b for b in _LENGTHS if len(word[0]) <= b[1])
            by_length[bounds] += Share(known, 1)
            if not known:
                strange.append(word.span())
        named = tuple((_named(bounds), share) for bounds, share in by_length.items() if share.of)
        sentences = self._sentences(begun, text)
        copied, usual = self._copying(text), self.usual_copied
        return Compared(within, self.usual, named, copied, tuple(strange), sentences, usual)

    def _copying(self, text: str) -> Share:
        could = not self.sentences and min(len(text), len(self.text)) >= LONG
        return Share(self._copied(text), len(text)) if could else Share(0, 0)

    def _sentences(self, begun: str, text: str) -> Share:
        """Of the sentences that end in a text, how many were learned as they are; none of none without sentences."""
        if not self.sentences:
            return Share(0, 0)
        begun = begun[begun.rfind(self.ends) + len(self.ends) :]
        whole = [_regular(sentence) for sentence in f"{begun}{text}".split(self.ends)[:-1]]
        found = [sentence in self.sentences for sentence in whole if sentence]
        return Share(sum(found), len(found))

    def _copied(self, text: str) -> int:
        """Characters within pieces of at least LONG that stand in the text learned."""
        copied, done, start = 0, 0, 0
        while start + LONG <= len(text):
            if text[start : start + LONG] not in self.text:
                start += 1
                continue
            end = start + LONG
            copied += end - max(start, done)
            done, start = end, start + 1
        return copied


def _percent(share: float) -> str:
    """Whole percents, and tenths where they are not to be taken for all or nothing."""
    shown = f"{100 * share:.0f}"
    return f"{100 * share:.1f}" if shown in ("0", "100") and 1e-9 < share < 1 - 1e-9 else shown


def _regular(sentence: str) -> str:
    return " ".join(sentence.split())


def _named(bounds: tuple[int, float]) -> str:
    return f"{bounds[0]}–{bounds[1]}" if bounds[1] < math.inf else f"{bounds[0]} or more"
