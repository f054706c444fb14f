"""Tokenizers: text ↔ ids by characters, by words, and by the byte-level encodings of `byte_pairs`.

All share one interface, `Tokenizer`. What a tokenizer does not know becomes its unknown token, which is visible in
decoded text: `�` for a character, `<unk>` for a word. Byte-level encodings know every text. Strings that look like
special tokens ("<|endoftext|>") are ordinary text everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

from .byte_pairs import ENCODINGS, MAX_TOKEN, load_encoding, old_byte_pairs, open_library, train_bpe
from .errors import TextError

KINDS = ("char", "word", "bpe", "tiktoken")

UNKNOWN_CHARACTER = "\N{REPLACEMENT CHARACTER}"
UNKNOWN_WORD = "<unk>"

MAX_WORDS = 20_000
"""Words of a vocabulary, of which the rarest are left out."""
WORD_PATTERN = r"\n|[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_"
"""A line break, a word with its apostrophes, or one punctuation mark."""
_WORD = re.compile(WORD_PATTERN)


class Tokenizer(Protocol):
    """Text ↔ ids. `decode(encode(text))` is the text itself, or its normal form where one is documented."""

    kind: str
    name: str
    vocab_size: int

    def encode(self, text: str) -> list[int]:
        """The ids of a text; never fails, unknown parts become the unknown token."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids."""

    def token_text(self, token: int) -> str:
        """One token as it stands in a text, whitespace included; bytes that are no character show as �."""

    def unknown_parts(self, text: str) -> list[str]:
        """The characters or words of a text, each once, that this tokenizer does not know."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `tokenizer_from_dict` is the inverse."""


class CharTokenizer:
    """One id per character, in code-point order; the last id is � for characters that were not there in training.

    >>> t = CharTokenizer.from_text("abba")
    >>> t.encode("bad"), t.decode(t.encode("bad"))
    ([1, 0, 2], 'ba�')
    """

    kind = "char"

    def __init__(self, characters: str):
        self.characters = characters.replace(UNKNOWN_CHARACTER, "") + UNKNOWN_CHARACTER
        self.name = "characters"
        self.vocab_size = len(self.characters)
        self._ids = {character: i for i, character in enumerate(self.characters)}

    @classmethod
    def from_text(cls, text: str) -> CharTokenizer:
        """The characters that occur in a text."""
        return cls("".join(sorted(set(text))))

    def encode(self, text: str) -> list[int]:
        unknown = self.vocab_size - 1
        return [self._ids.get(character, unknown) for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(map(self.token_text, ids))

    def token_text(self, token: int) -> str:
        return self.characters[token] if token < self.vocab_size else UNKNOWN_CHARACTER

    def unknown_parts(self, text: str) -> list[str]:
        return [c for c in dict.fromkeys(text) if c not in self._ids]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "characters": self.characters[:-1]}


class WordTokenizer:
    """One id per word, punctuation mark or line break, most frequent first; id 0 is <unk>.

    Spaces are not tokens: decoding puts one between words and none before punctuation, so `decode(encode(text))` is
    the text with its spacing made regular, and doing it twice changes nothing more.

    >>> t = WordTokenizer.from_text("The cat sat. The dog sat.")
    >>> t.decode(t.encode("The  cat ,  the bird"))
    'The cat <unk> <unk> <unk>'
    """

    kind = "word"

    def __init__(self, words: Iterable[str]):
        self.words = [UNKNOWN_WORD, *(w for w in words if w != UNKNOWN_WORD)]
        self.name = "words"
        self.vocab_size = len(self.words)
        self._ids = {word: i for i, word in enumerate(self.words)}

    @classmethod
    def from_text(cls, text: str, max_words: int = MAX_WORDS) -> WordTokenizer:
        """The most frequent words of a text."""
        return cls(word for word, _ in Counter(_WORD.findall(text)).most_common(max_words - 1))

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(word, 0) for word in _WORD.findall(text)]

    def decode(self, ids: Iterable[int]) -> str:
        text, before = "", "\n"
        for word in map(self.token_text, ids):
            glued = before in ("\n", "(", "[", "{") or word == "\n" or word in ".,;:!?)]}"
            text += word if glued else " " + word
            before = word
        return text

    def token_text(self, token: int) -> str:
        return self.words[token] if token < self.vocab_size else UNKNOWN_WORD

    def unknown_parts(self, text: str) -> list[str]:
        return [w for w in dict.fromkeys(_WORD.findall(text)) if w not in self._ids]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": self.words[1:]}


def build_tokenizer(kind: str, text: str, *, vocab_size: int | None = None) -> Tokenizer:
    """A tokenizer of a kind (char, word, bpe, or the name of a tiktoken encoding) made for a text."""
    if kind == "char":
        return CharTokenizer.from_text(text)
    if kind == "word":
        return WordTokenizer.from_text(text, vocab_size or 20_000)
    if kind == "bpe":
        return train_bpe(text, vocab_size or 512)
    if kind in ENCODINGS:
        return load_encoding(kind)
    raise TextError(f"there is no tokenizer called {kind!r}; choose one of char, word, bpe, {', '.join(ENCODINGS)}")


def tokenizer_from_dict(values: dict[str, Any]) -> Tokenizer:
    """The tokenizer whose `to_dict` gave these values; a clear TextError where they make no sense."""
    try:
        kind = values["kind"]
        if kind == "char":
            characters = values["characters"]
            if not isinstance(characters, str) or len(set(characters)) != len(characters):
                raise TextError("a character tokenizer needs a string of distinct characters")
            return CharTokenizer(characters)
        if kind == "word":
            words = values["words"]
            if not isinstance(words, list) or not all(isinstance(w, str) and 0 < len(w) <= MAX_TOKEN for w in words):
                raise TextError("a word tokenizer needs a list of distinct words")
            if len(set(words)) != len(words):
                raise TextError("a word tokenizer needs a list of distinct words")
            return WordTokenizer(words)
        if kind == "bpe":
            return open_library(values["library"]) if "library" in values else old_byte_pairs(values)
        if kind == "tiktoken":
            return load_encoding(values["name"])
    except TextError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise TextError(f"this is not a tokenizer's description: {problem}") from problem
    raise TextError(f"there is no kind of tokenizer called {kind!r}; known are {', '.join(KINDS)}")


def visible(text: str) -> str:
    """A token's text with its whitespace made visible: ␣ for a space, ⏎ for a line break, ⇥ for a tab."""
    return text.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥").replace("\r", "␍")
