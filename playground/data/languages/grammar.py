"""Grammar: reads a text word by word along a language's graph, and finds the first word that cannot come there.

A place is one word of one edge's text. What may come next is a set of places; a word keeps those that are this word
and moves each one on, just as a nondeterministic automaton reads (Rabin and Scott 1959).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..tokenizers import WORD_PATTERN
from .exact import ExactModel
from .graph import CHANCE, Language

NEXT, WORD, SPELLING, ENDS = "what happens next", "which word comes next", "spelling", "ends of words or numbers"
"""Kinds of characters that none of the language's own rules decides."""
_WORDS = re.compile(WORD_PATTERN)
_FEW, _MANY = 3, 50
"""At most this many possible words are named; if there are more, only those that begin most like the wrong one."""

Place = tuple[int, int]
"""(edge, index of a word in its text)."""


class Word(NamedTuple):
    """A word of an edge's text, and what stands between it and the next one."""

    text: str
    gap: str
    start: int


class Fault(NamedTuple):
    """The first word of a text that cannot come where it does."""

    start: int
    end: int
    """Where the word begins and ends in the text, in characters."""
    word: str
    """Empty if the fault is the space before it."""
    kind: str
    """The kind of word that should come there."""
    rule: str
    """Why the word cannot come there."""


class Reading(NamedTuple):
    """One unit of a text: a story, a sum or a line."""

    start: int
    end: int
    whole: bool
    """Whether it ended with its line break."""
    fault: Fault | None


class Grammar:
    """Judges texts of one language."""

    def __init__(self, language: Language):
        self.language, graph = language, language.graph
        self._words: dict[str, tuple[Word, ...]] = {text: _cut(text) for text in dict.fromkeys(graph.texts)}
        ends_line = np.array([text.endswith("\n") for text in graph.texts])
        begins = np.unique(np.append(graph.target[ends_line], 0))
        self._opening: dict[str, list[Place]] = {}  # of a unit, by its first word
        once = {graph.texts[e] if ends_line[e] else e: (e, i) for e, i in self._enter(begins)}  # where a line ends, so
        for place in once.values():  # ends the unit: which state follows does not matter
            self._opening.setdefault(self._word(place).text, []).append(place)
        self._kinds: dict[str, set[str]] = {}  # the places of each word, wherever it may stand
        for edge in dict(zip(graph.texts, range(len(graph.texts)))).values():
            kinds = self.kinds_of_characters(edge)
            for word in self._words[graph.texts[edge]]:
                self._kinds.setdefault(word.text, set()).add(kinds[word.start])

    def read(self, text: str, *, spaced: bool = True) -> list[Reading]:
        """Parse a text unit by unit, each from a fresh state. `spaced`: whether a wrong space between words is a fault.

        The last word may be cut short, and the last unit, too.
        """
        found, words = [], list(_WORDS.finditer(text))
        first = 0
        while first < len(words):
            last = next((i for i in range(first, len(words)) if words[i][0] == "\n"), len(words) - 1)
            whole = words[last][0] == "\n"
            fault = self._fault(text, words[first : last + 1], spaced, cut=None if whole else len(text))
            found.append(Reading(words[first].start(), words[last].end(), whole, fault))
            first = last + 1
        return found

    def kinds_of_characters(self, edge: int) -> list[str]:
        """The kind of each character in an edge's text."""
        text = self.language.graph.texts[edge]
        kinds = list(_plain_kinds(text))
        for start, end, kind in self._marks(edge):
            kinds[start:end] = [kind] * (end - start)
        return kinds

    def kinds_of_places(self, exact: ExactModel, by_word: bool) -> tuple[tuple[str, ...], np.ndarray]:
        """All kinds, and for each place of the exact model the index of its kind.

        Places are characters, or words if `by_word`.
        """
        numbers: dict[str, int] = {}

        def number(kind: str) -> int:
            return numbers.setdefault(kind, len(numbers))

        plain = {text: np.array([number(kind) for kind in _plain_kinds(text)]) for text in self._words}
        begins = {text: np.array([word.start for word in words]) for text, words in self._words.items()}
        found = []
        for edge, text in enumerate(self.language.graph.texts):
            kinds = plain[text].copy()
            for start, end, kind in self._marks(edge):
                kinds[start:end] = number(kind)
            found.append(kinds[begins[text]] if by_word else kinds)
        places = np.concatenate(found)
        assert len(places) == len(exact.tokens), "its tokens are neither characters nor words"
        return tuple(numbers), places

    def _fault(self, text: str, words: list[re.Match], spaced: bool, cut: int | None) -> Fault | None:
        begun = self._opening.get(words[0][0], [])
        live: Iterable[Place] = begun or [place for places in self._opening.values() for place in places]
        for i, word in enumerate(words):
            unfinished = word.end() == cut
            fits = [p for p in live if self._fits(p, word[0], unfinished)]
            if not fits:
                return self._explained(live, word)
            if unfinished or word[0] == "\n":
                return None
            follows = words[i + 1].start() if i + 1 < len(words) else len(text) if cut else word.end()
            gap = text[word.end() : follows]
            if spaced:
                allowed = {self._word(place).gap for place in fits}
                fits = [p for p in fits if self._word(p).gap == gap or (i + 1 == len(words) and not gap)]
                if not fits:
                    start = word.end() + (" " in allowed and gap.startswith(" "))
                    start, end = (start, follows) if gap else words[i + 1].span()
                    how = {"": "no space", " ": "a space"}.get(gap, "more than one space")
                    return Fault(start, end, "", ENDS, f"{how} after “{word[0]}”")
            live = self._after(fits)
        return None

    def _explained(self, live: Iterable[Place], word: re.Match) -> Fault:
        """What should have come there: the places that begin most like the word, if possible of its own kinds."""
        places = {self._word(place).text: place for place in live}  # one of each word
        alike = {text: _shared(text, word[0]) for text in places}
        if len(places) > _MANY:
            places = {text: places[text] for text in sorted(places, key=alike.__getitem__, reverse=True)[:_MANY]}
        kinds = {text: self._kind(place, alike[text]) for text, place in places.items()}
        own = self._kinds.get(word[0], set())
        same = (
            [text for text in places if kinds[text] in own]
            or [text for text in places if kinds[text] != CHANCE]
            or list(places)
        )
        most = (
            0 if word[0] in self._kinds else max(alike[text] for text in same)
        )  # a misspelt word is judged by its neighbours
        kind = next(kinds[text] for text in same if alike[text] >= most)
        possible = tuple(sorted(text for text in same if alike[text] >= most and kinds[text] == kind))
        if word[0].isalpha() and word[0] not in self._kinds and self.language.spelled:
            why, kind = f"“{word[0]}” is not a word in this language", SPELLING
        else:
            why = self.language.broken(kind, word[0], possible if len(possible) <= _FEW else ())
        return Fault(*word.span(), word[0], kind, why)

    def _fits(self, place: Place, word: str, unfinished: bool) -> bool:
        there = self._word(place).text
        return there.startswith(word) if unfinished else there == word

    def _after(self, places: list[Place]) -> list[Place]:
        graph = self.language.graph
        moved = [(edge, i + 1) for edge, i in places]
        inside = [(edge, i) for edge, i in moved if i < len(self._words[graph.texts[edge]])]
        over = {int(graph.target[edge]) for edge, i in moved if i == len(self._words[graph.texts[edge]])}
        return inside + self._enter(np.array(sorted(over), dtype=np.int64))

    def _enter(self, states: np.ndarray) -> list[Place]:
        first = self.language.graph.first_edge
        return [(edge, 0) for state in states for edge in range(first[state], first[state + 1])]

    def _word(self, place: Place) -> Word:
        return self._words[self.language.graph.texts[place[0]]][place[1]]

    def _kind(self, place: Place, shared: int) -> str:
        """The kind of a word, read at its first differing character, or at its last."""
        word = self._word(place)
        return self.kinds_of_characters(place[0])[word.start + min(shared, len(word.text) - 1)]

    def _marks(self, edge: int) -> list[tuple[int, int, str]]:
        graph = self.language.graph
        return list(self.language.mark(graph.states[graph.source[edge]], graph.texts[edge]))


@lru_cache(maxsize=8)
def grammar_of(language: Language) -> Grammar:
    """A language's grammar, made once."""
    return Grammar(language)


@lru_cache(maxsize=20_000)
def _plain_kinds(text: str) -> tuple[str, ...]:
    """The kinds of characters about which no rule says more."""
    kinds = []
    for i, character in enumerate(text):
        if not character.isalnum():
            kinds.append(ENDS)
        elif i and text[i - 1].isalnum():
            kinds.append(SPELLING)
        else:
            kinds.append(WORD if i else NEXT)
    return tuple(kinds)


def _cut(text: str) -> tuple[Word, ...]:
    found = list(_WORDS.finditer(text))
    ends = [word.start() for word in found[1:]] + [len(text)]
    return tuple(Word(word[0], text[word.end() : end], word.start()) for word, end in zip(found, ends))


def _shared(a: str, b: str) -> int:
    """Length of the common beginning of two words."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
