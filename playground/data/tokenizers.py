"""Tokenizers: text ↔ ids by characters, by words, by byte-level BPE trained here, and by tiktoken's own encodings.

All four share one interface, `Tokenizer`. What a tokenizer does not know becomes its unknown token, which is visible in
decoded text: `�` for a character, `<unk>` for a word. Byte-level encodings know every text. Strings that look like
special tokens ("<|endoftext|>") are ordinary text everywhere.
"""

from __future__ import annotations

import base64
import re
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

import tiktoken

from .errors import TextError

KINDS = ("char", "word", "bpe", "tiktoken")
ENCODINGS = ("gpt2", "cl100k_base", "o200k_base")

UNKNOWN_CHARACTER = "\N{REPLACEMENT CHARACTER}"
UNKNOWN_WORD = "<unk>"

MAX_WORDS = 20_000
"""Words of a vocabulary, of which the rarest are left out."""
WORD_PATTERN = r"\n|[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_"
"""A line break, a word with its apostrophes, or one punctuation mark."""
_WORD = re.compile(WORD_PATTERN)
PIECES = r" ?\p{L}+| ?\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"
"""What a trained BPE never merges across."""
_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|NUMBER| ?[^\s\p{L}\p{N}]+|\s+(?!WORD)|\s+"
_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "pieces": PIECES,
    "gpt2": _GPT2.replace("NUMBER", r" ?\p{N}+").replace("WORD", r"\S"),
    # a digit is a piece of its own before anything else is cut, so that it ends the white space before it
    "gpt2, single digits": _GPT2.replace("NUMBER", r"\p{N}").replace("WORD", r"[^\s\p{N}]"),
    "cl100k_base": _CL100K,
    "qwen2": _CL100K.replace(r"\p{N}{1,3}", r"\p{N}"),
    "o200k_base": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
"""The published ways of cutting a text before merging: every text is cut whole, in time proportional to its length."""
MAX_TOKEN = 1000
"""Characters or bytes of one token in a file."""


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


class ByteTokenizer:
    """A byte-level byte-pair encoding run by tiktoken: knows every text, and decoding gives it back exactly.

    Either one of tiktoken's own encodings (`load_encoding`) or one trained here (`train_bpe`).
    """

    def __init__(self, encoding: tiktoken.Encoding, kind: str):
        self.kind = kind
        self.name = encoding.name
        self.vocab_size = encoding.n_vocab
        self.encoding = encoding

    def encode(self, text: str) -> list[int]:
        """Raises TextError for white space of about a million characters, which the published patterns cannot cut."""
        try:
            return self.encoding.encode_ordinary(text)
        except BaseException as problem:
            if type(problem).__name__ != "PanicException":  # no Exception, so that nobody catches it by chance
                raise
            raise TextError("the text has far too much white space in one place: take it out") from problem

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; an id that the encoding leaves unused is shown as �."""
        try:
            return self.encoding.decode_single_token_bytes(token)
        except KeyError:
            return UNKNOWN_CHARACTER.encode()

    def token_text(self, token: int) -> str:
        return self.token_bytes(token).decode("utf-8", errors="replace")

    def unknown_parts(self, text: str) -> list[str]:
        return []

    def to_dict(self) -> dict[str, Any]:
        if self.kind == "tiktoken":
            return {"kind": self.kind, "name": self.name}
        ranks = sorted(self.encoding._mergeable_ranks.items(), key=lambda item: item[1])
        values = {"kind": self.kind, "tokens": [base64.b64encode(token).decode("ascii") for token, _ in ranks]}
        if self.pattern != "pieces":
            values["pattern"] = self.pattern
        if self.encoding._special_tokens:
            values["special"] = self.encoding._special_tokens
        return values

    @property
    def pattern(self) -> str:
        """The name in PATTERNS of how texts are cut before merging."""
        if self.kind == "tiktoken":
            return self.name
        return next(name for name, pattern in PATTERNS.items() if pattern == self.encoding._pat_str)


def train_bpe(text: str, vocab_size: int = 512) -> ByteTokenizer:
    """Learn up to vocab_size − 256 merges from a text (byte-pair encoding, Sennrich et al. 2016, on bytes).

    The merges are learned by `tokenizers` and run by tiktoken.
    """
    if vocab_size < 256:
        raise TextError(f"a byte-level vocabulary starts with the 256 bytes: {vocab_size} is too small")
    from tokenizers import Regex, models, pre_tokenizers, trainers
    from tokenizers import Tokenizer as Trainable

    trainable = Trainable(models.BPE())
    trainable.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PIECES), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    trainable.train_from_iterator([text], trainer)
    vocabulary = trainable.get_vocab()
    learned = sorted((i, token) for token, i in vocabulary.items() if token not in alphabet)
    tokens = [bytes([b]) for b in range(256)] + [stand_for(token) for _, token in learned]
    return byte_tokenizer(tokens)


def load_encoding(name: str, *, patience: float = 20.0) -> ByteTokenizer:
    """One of tiktoken's own encodings, from its cache or, waiting at most `patience` seconds, from the network."""
    if name not in ENCODINGS:
        raise TextError(f"there is no encoding called {name!r}; choose one of {', '.join(ENCODINGS)}")
    found: list[tiktoken.Encoding] = []
    # tiktoken downloads without a timeout, so a network that swallows packets would hang us
    thread = threading.Thread(target=lambda: _try_encoding(name, found), daemon=True)
    thread.start()
    thread.join(patience)
    if not found:
        raise TextError(
            f"the {name} encoding's file is neither on this machine nor reachable: "
            "go online once, or choose characters, words or a BPE trained on your text"
        )
    return ByteTokenizer(found[0], "tiktoken")


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
            tokens = [base64.b64decode(token, validate=True) for token in values["tokens"]]
            return byte_tokenizer(tokens, values.get("pattern", "pieces"), values.get("special", {}))
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


def byte_tokenizer(
    tokens: list[bytes], pattern: str = "pieces", special: dict[str, int] | None = None
) -> ByteTokenizer:
    """A byte-level BPE of tokens in the order of their merges, which take the ids that no special token has.

    Every byte must be a token of its own, or texts could not be read: tiktoken would then look for ever. Raises
    TextError for tokens, special tokens or names of patterns that make no sense.
    """
    special = dict(special or {})
    if len(set(tokens)) != len(tokens) or not all(0 < len(token) <= MAX_TOKEN for token in tokens):
        raise TextError(f"a byte-level tokenizer needs distinct tokens of 1 to {MAX_TOKEN:,} bytes")
    if any(bytes([byte]) not in tokens[:256] for byte in range(256)):
        raise TextError("a byte-level tokenizer needs distinct tokens that begin with the 256 bytes")
    if not isinstance(pattern, str) or pattern not in PATTERNS:
        raise TextError(f"there is no pattern called {pattern!r}; known are {', '.join(PATTERNS)}")
    taken = set(special.values())
    ids = range(len(tokens) + len(special))
    if len(taken) != len(special) or not all(type(number) is int and number in ids for number in taken):
        raise TextError("the special tokens' ids must be distinct, and leave no gap")
    if not all(isinstance(text, str) and 0 < len(text) <= MAX_TOKEN for text in special):
        raise TextError("the special tokens must be texts")
    ranks = dict(zip(tokens, (number for number in ids if number not in taken)))
    encoding = tiktoken.Encoding("bpe", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens=special)
    return ByteTokenizer(encoding, "bpe")


def _try_encoding(name: str, found: list[tiktoken.Encoding]) -> None:
    try:
        found.append(tiktoken.get_encoding(name))
    except Exception:  # whatever the network layer raises means the same to us: not to be had
        return


def stand_for(token: str) -> bytes:
    """The bytes that a token of `tokenizers`, written in `byte_stand_ins`, stands for."""
    return bytes(_BYTE_OF[character] for character in token)


def byte_stand_ins() -> dict[int, str]:
    """The printable character that `tokenizers` writes for each byte.

    Printable Latin-1 bytes stand for themselves; the others, in order, are written as U+0100, U+0101, …
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    return {byte: chr(byte) for byte in printable} | {byte: chr(0x100 + i) for i, byte in enumerate(others)}


_BYTE_OF = {character: byte for byte, character in byte_stand_ins().items()}
