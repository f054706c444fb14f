"""Tokenizers: text ↔ ids by characters, by words, and by the byte-level encodings of `byte_pairs`.

All share one interface, `Tokenizer`. Text that a tokenizer does not know becomes its unknown token, visible in
decoded text: `�` for a character, `<unk>` for a word. Byte-level encodings know every text. Strings that look like
special tokens ("<|endoftext|>") are ordinary text everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from .byte_pairs import ENCODINGS, MAX_TOKEN, load_encoding, old_byte_pairs, open_library, train_bpe
from .errors import TextError

KINDS = ("char", "word", "bpe", "tiktoken")

UNKNOWN_CHARACTER = "\N{REPLACEMENT CHARACTER}"
UNKNOWN_WORD = "<unk>"

MAX_WORDS = 20_000
"""Most words in a vocabulary; rarer ones are left out."""
WORD_PATTERN = r"\n|[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_"
"""A line break, a word with its apostrophes, or one punctuation mark."""
_WORD = re.compile(WORD_PATTERN)


class Tokenizer(Protocol):
    """Text ↔ ids. `decode(encode(text))` is the text itself, or its normal form where one is documented."""

    kind: str
    name: str
    vocab_size: int

    def encode(self, text: str) -> list[int]:
        """The ids of a text; never fails: unknown parts become the unknown token."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids."""

    def token_text(self, token: int) -> str:
        """One token as it occurs in a text, whitespace included; bytes that do not make a character show as �."""

    def unknown_parts(self, text: str) -> list[str]:
        """The characters or words of a text, each once, that this tokenizer does not know."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `tokenizer_from_dict` is the inverse."""


class _Table:
    """One id per piece of a text, looked up in a table of tokens; pieces not in it become the unknown token."""

    def __init__(self, tokens: Sequence[str], unknown: int):
        self.vocab_size, self.unknown = len(tokens), unknown
        self._tokens, self._ids = tokens, {token: i for i, token in enumerate(tokens)}

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(piece, self.unknown) for piece in self._pieces(text)]

    def token_text(self, token: int) -> str:
        return self._tokens[token if token < self.vocab_size else self.unknown]

    def unknown_parts(self, text: str) -> list[str]:
        return [piece for piece in dict.fromkeys(self._pieces(text)) if piece not in self._ids]


class CharTokenizer(_Table):
    """One id per character, in code-point order; the last id is � for characters that were not there in training.

    >>> t = CharTokenizer.from_text("abba")
    >>> t.encode("bad"), t.decode(t.encode("bad"))
    ([1, 0, 2], 'ba�')
    """

    kind, name = "char", "characters"
    _pieces = staticmethod(iter)

    def __init__(self, characters: str):
        self.characters = characters.replace(UNKNOWN_CHARACTER, "") + UNKNOWN_CHARACTER
        super().__init__(self.characters, len(self.characters) - 1)

    @classmethod
    def from_text(cls, text: str) -> CharTokenizer:
        """A tokenizer for the characters that occur in a text."""
        return cls("".join(sorted(set(text))))

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(map(self.token_text, ids))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "characters": self.characters[:-1]}


def in_known_case(text: str, tokenizer: Tokenizer) -> str:
    """A text, of the same length, with those capitals in lower case that the tokenizer knows in lower case only."""
    if tokenizer.kind != "char":
        return text
    lower = {letter: letter.lower() for letter in tokenizer.unknown_parts(text) if len(letter.lower()) == 1}
    known = {letter: small for letter, small in lower.items() if not tokenizer.unknown_parts(small)}
    return text.translate(str.maketrans(known))


class WordTokenizer(_Table):
    """One id per word, punctuation mark or line break, most frequent first; id 0 is <unk>.

    Spaces are not tokens: decoding puts one between words and none before punctuation, so `decode(encode(text))` is
    the text with its spacing made regular, and doing it twice changes nothing more.

    >>> t = WordTokenizer.from_text("The cat sat. The dog sat.")
    >>> t.decode(t.encode("The  cat ,  the bird"))
    'The cat <unk> <unk> <unk>'
    """

    kind, name = "word", "words"
    _pieces = staticmethod(_WORD.findall)

    def __init__(self, words: Iterable[str]):
        self.words = [UNKNOWN_WORD, *(w for w in words if w != UNKNOWN_WORD)]
        super().__init__(self.words, 0)

    @classmethod
    def from_text(cls, text: str, max_words: int = MAX_WORDS) -> WordTokenizer:
        """A tokenizer for the most frequent words of a text."""
        return cls(word for word, _ in Counter(_WORD.findall(text)).most_common(max_words - 1))

    def decode(self, ids: Iterable[int]) -> str:
        text, before = "", "\n"
        for word in map(self.token_text, ids):
            glued = before in ("\n", "(", "[", "{") or word == "\n" or word in ".,;:!?)]}"
            text += word if glued else " " + word
            before = word
        return text

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": self.words[1:]}


def build_tokenizer(kind: str, text: str, *, vocab_size: int | None = None) -> Tokenizer:
    """A tokenizer made for a text, of this kind: char, word, bpe, or the name of a tiktoken encoding."""
    if kind == "char":
        return CharTokenizer.from_text(text)
    if kind == "word":
        return WordTokenizer.from_text(text, vocab_size or MAX_WORDS)
    if kind == "bpe":
        return train_bpe(text, vocab_size or 512)
    if kind in ENCODINGS:
        return load_encoding(kind)
    raise TextError(f"there is no tokenizer called {kind!r}; choose one of char, word, bpe, {', '.join(ENCODINGS)}")


def tokenizer_from_dict(values: dict[str, Any]) -> Tokenizer:
    """The tokenizer whose `to_dict` gave these values. Raises TextError if they make no sense."""
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
