"""Spelling: the text of tokens that come one by one, in time that does not depend on how many came before."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence

from ..data.byte_pairs import ByteTokenizer
from ..data.tokenizers import Tokenizer


class Spelling:
    """Spells a sequence of tokens: says what each one adds to the text decoded so far.

    >>> from playground.data.tokenizers import WordTokenizer
    >>> words = WordTokenizer.from_text("the cat sat.")
    >>> spelling = Spelling(words, words.encode("the"))
    >>> [spelling.add(token) for token in words.encode("cat sat.")]
    [' cat', ' sat', '.']
    """

    def __init__(self, tokenizer: Tokenizer, before: Iterable[int] = ()):
        self._tokenizer = tokenizer
        # all bytes before count: the last character may be incomplete
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace") if isinstance(tokenizer, ByteTokenizer) else None
        self._last: list[int] = []
        for token in before:
            self.add(token)

    def add(self, token: int, *, last: bool = False) -> str:
        """The text that this token adds; with `last`, bytes that no later token will complete show as �."""
        if self._bytes is not None:
            return self._bytes.decode(self._tokenizer.token_bytes(token), final=last)
        # the space before a word depends only on the token before it
        before, self._last = self._last, [token]
        return self._tokenizer.decode([*before, token])[len(self._tokenizer.decode(before)) :]

    @property
    def incomplete(self) -> str:
        """The trailing bytes that do not yet make a whole character, as a tokenizer decodes them: �, or nothing."""
        return self._bytes.getstate()[0].decode("utf-8", "replace") if self._bytes is not None else ""


class StopFinder:
    """Watches a text grow for stop strings, keeping no more of it than the longest string needs."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str]):
        self._spelling, self._stop = Spelling(tokenizer), stop
        self._kept, self._tail = max(map(len, stop)) - 1, ""

    def met_with(self, token: int) -> bool:
        """Whether this token completes a stop string in the decoded text."""
        text = self._tail + self._spelling.add(token)
        self._tail = text[max(len(text) - self._kept, 0) :]
        text += self._spelling.incomplete
        return any(stop in text for stop in self._stop)
