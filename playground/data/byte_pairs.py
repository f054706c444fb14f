"""Byte-level byte-pair encodings: trained here, opened from a `tokenizer.json`, or OpenAI's own.

`tokenizers` runs the first two, tiktoken the last. They encode any text, and decoding restores it exactly.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import tiktoken
from tokenizers import Tokenizer as Library
from tokenizers import pre_tokenizers, trainers

from .errors import TextError

ENCODINGS = ("gpt2", "cl100k_base", "o200k_base")
MAX_TOKEN = 1000
"""Most characters or bytes in one token of a file."""
MAX_WORK = 30_000_000
"""Merges are worked out only up to this sum of the tokens' squared lengths, which takes a few seconds."""
AT_ONCE = 100_000
"""Characters that the library encodes at once: each takes it about 200 bytes."""
_BETWEEN_LINES = re.compile(r"(?<=\S\n)(?=[A-Za-z])")
"""Where every pattern below cuts, whatever else is in the text."""
MAX_CUTS = 4
"""Most parts of a pre-tokenizer; each goes over the whole text."""

PIECES = r" ?\p{L}+| ?\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"
"""What a BPE trained here never merges across."""
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
_CUTS = {
    *PATTERNS.values(),
    # as others write them
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


class ByteTokenizer:
    """A tokenizer whose tokens are strings of bytes, so that it knows every text."""

    kind: str
    name: str
    vocab_size: int

    def encode(self, text: str) -> list[int]:
        """Raises TextError for white space of about a million characters, which some patterns cannot cut."""
        try:
            return self._encode(text)
        except BaseException as problem:
            if not _panicked(problem):
                raise
            raise TextError("the text has far too much white space in one place: take it out") from problem

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_text(self, token: int) -> str:
        return self.token_bytes(token).decode("utf-8", errors="replace")

    def unknown_parts(self, text: str) -> list[str]:
        return []

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; an id that the encoding leaves unused is shown as �."""
        raise NotImplementedError


class PublishedEncoding(ByteTokenizer):
    """One of OpenAI's encodings; `load_encoding` makes it."""

    kind = "tiktoken"

    def __init__(self, encoding: tiktoken.Encoding):
        self.name, self.vocab_size, self._encoding = encoding.name, encoding.n_vocab, encoding
        self._encode = encoding.encode_ordinary

    def token_bytes(self, token: int) -> bytes:
        try:
            return self._encoding.decode_single_token_bytes(token)
        except KeyError:
            return "\N{REPLACEMENT CHARACTER}".encode()

    def library(self) -> dict[str, Any]:
        """The tokenizer in the form of a `tokenizer.json`."""
        return _body(self._encoding._mergeable_ranks, PATTERNS[self.name], self._encoding._special_tokens)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name}


class BytePairs(ByteTokenizer):
    """A byte-pair encoding that `tokenizers` runs: trained here (`train_bpe`) or opened (`open_library`).

    Special tokens are in its vocabulary, though no merge makes them: in texts they are ordinary text.
    """

    kind = name = "bpe"

    def __init__(self, library: Library):
        self._library = library
        self._bytes = [b""] * library.get_vocab_size()
        for token, number in library.get_vocab().items():
            self._bytes[number] = _bytes_of(token)
        self.vocab_size = len(self._bytes)

    def _encode(self, text: str) -> list[int]:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half a pair has no bytes
        ids: list[int] = []
        start = 0
        while start < len(text):
            cut = _BETWEEN_LINES.search(text, start + AT_ONCE)
            end = cut.start() if cut else len(text)
            ids += self._library.encode(text[start:end], add_special_tokens=False).ids
            start = end
        return ids

    def token_bytes(self, token: int) -> bytes:
        return self._bytes[token] if token < self.vocab_size else "\N{REPLACEMENT CHARACTER}".encode()

    def library(self) -> dict[str, Any]:
        """The tokenizer in the form of a `tokenizer.json`."""
        return json.loads(self._library.to_str())

    def to_dict(self) -> dict[str, Any]:
        values = self.library()
        values["model"]["merges"] = [" ".join(pair) for pair in values["model"]["merges"]]  # a third of the values
        return {"kind": self.kind, "library": values}


def train_bpe(text: str, vocab_size: int = 512) -> BytePairs:
    """Learn up to vocab_size − 256 merges from a text (byte-pair encoding, Sennrich et al. 2016, on bytes)."""
    if vocab_size < 256:
        raise TextError(f"a byte-level vocabulary starts with the 256 bytes: {vocab_size} is too small")
    trainable = Library.from_str(json.dumps(_body({}, PIECES, {})))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    trainable.train_from_iterator([text], trainer)
    learned = sorted((i, token) for token, i in trainable.get_vocab().items() if token not in alphabet)
    return byte_pairs([bytes([b]) for b in range(256)] + [_bytes_of(token) for _, token in learned])


def load_encoding(name: str, *, patience: float = 20.0) -> PublishedEncoding:
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
            f"the file of the {name} encoding is neither on this machine nor reachable. Go online once, or choose "
            "characters, words or a BPE trained on your text"
        )
    return PublishedEncoding(found[0])


def _try_encoding(name: str, found: list[tiktoken.Encoding]) -> None:
    try:
        found.append(tiktoken.get_encoding(name))
    except Exception:  # whatever the network layer raises means the same here: the encoding cannot be had
        return


# ---- from files ------------------------------------------------------------------------------------------------------


def open_library(body: dict[str, Any]) -> BytePairs:
    """The byte-level BPE in a `tokenizer.json`, which may come from a stranger.

    Raises a TextError that names an unsuitable part: one that would change how texts are read, take unbounded time, or
    lose text in decoding. Strings that look like special tokens are ordinary text.
    """
    try:
        _check_parts(body)
        model = body["model"] | {"type": "BPE", "vocab": _vocabulary(body)}
        return BytePairs(Library.from_str(json.dumps(body | {"version": "1.0", "added_tokens": [], "model": model})))
    except TextError:
        raise
    except (KeyError, IndexError, TypeError, AttributeError) as problem:
        raise TextError("a part of it is not what it should be") from problem
    except BaseException as problem:  # the library has no error class of its own
        if not isinstance(problem, Exception) and not _panicked(problem):
            raise
        raise TextError(str(problem)[:200]) from problem


_PARTS = {
    "truncation": ("None",),
    "padding": ("None",),
    "normalizer": ("None",),
    "post_processor": ("None", "ByteLevel"),  # this one says where tokens lie in a text, and adds none
    "decoder": ("ByteLevel",),
}
"""The parts of a tokenizer.json that change a text, and which of them are understood."""


def _check_parts(body: dict[str, Any]) -> None:
    """Raise TextError unless texts are cut whole, by published patterns, then into bytes, and always merged alike."""
    for name, understood in _PARTS.items():
        if _kind(body.get(name)) not in understood:
            raise TextError(f"the {name} {_kind(body.get(name))} is not understood: texts would be read in another way")
    part = body["pre_tokenizer"]
    *cuts, level = parts = part["pretokenizers"] if _kind(part) == "Sequence" else [part]
    if len(parts) > MAX_CUTS:
        raise TextError(f"the pre_tokenizer has {len(parts):,} parts, which is not understood")
    if _kind(level) != "ByteLevel":
        raise TextError(f"the pre_tokenizer {_kind(level)} is not understood: only byte-level BPE can be opened here")
    if level.get("add_prefix_space", True):
        raise TextError("the pre_tokenizer ByteLevel with add_prefix_space is not understood")
    for cut in cuts:
        if _kind(cut) == "Split":
            if cut["pattern"].get("Regex") not in _CUTS or cut["behavior"] != "Isolated" or cut.get("invert"):
                raise TextError(f"the pre_tokenizer's pattern {str(cut['pattern'])[:80]} is none of those known here")
        elif _kind(cut) != "Digits":
            raise TextError(f"the pre_tokenizer {' and '.join(map(_kind, parts))} is not understood")
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if value := body["model"].get(name):
            raise TextError(f"a BPE with {name} {str(value)[:40]!r} is not understood")


def _vocabulary(body: dict[str, Any]) -> dict[str, int]:
    """All tokens with their ids 0, 1, …, including the special ones. Raises TextError if this is no byte-level BPE."""
    vocab, added = body["model"]["vocab"], body.get("added_tokens") or []
    for token in added:
        if not token.get("special"):
            raise TextError(f"the added token {token['content'][:60]!r} would be found in texts before they are cut")
    special = {token["content"]: token["id"] for token in added}
    if len({*special.values()}) < len(added) or any(vocab.get(text, i) != i for text, i in special.items()):
        raise TextError("the added tokens' ids are not their own")
    vocab = vocab | special
    if not all(type(number) is int for number in vocab.values()):
        raise TextError("a BPE with vocab whose ids are no numbers is not understood")
    if sorted(vocab.values()) != list(range(len(vocab))):
        raise TextError("the tokenizer's ids have gaps, or stand for two tokens")
    if not all(0 < len(token) <= MAX_TOKEN for token in vocab):
        raise TextError(f"a token has 1 to {MAX_TOKEN:,} characters")
    if not vocab.keys() >= _BYTE_OF.keys():
        raise TextError("a byte-level tokenizer needs the 256 bytes among its tokens")
    return vocab


def _kind(part: Any) -> str:
    """A part's name; "None" if there is no part, "nameless" for a dict without a name."""
    return str(part.get("type", "nameless") if isinstance(part, dict) else part)[:40]


def byte_pairs(tokens: list[bytes], pattern: str = "pieces", special: dict[str, int] | None = None) -> BytePairs:
    """A byte-level BPE from tokens in the order of their merges. They take the ids that no special token has.

    Raises TextError for invalid tokens, special tokens or pattern names.
    """
    if sum(len(token) ** 2 for token in tokens) > MAX_WORK:
        raise TextError("a byte-level tokenizer needs shorter tokens than these")
    if pattern not in PATTERNS:
        raise TextError(f"there is no pattern called {pattern!r}; known are {', '.join(PATTERNS)}")
    special = special or {}
    taken = set(special.values())
    free = (number for number in range(len(tokens) + len(special)) if number not in taken)
    return open_library(_body(dict(zip(tokens, free)), PATTERNS[pattern], special))


def old_byte_pairs(values: dict[str, Any]) -> BytePairs:
    """Read the form saved before the library's own: the bytes of each token, in the order of their merges."""
    tokens = [base64.b64decode(token, validate=True) for token in values["tokens"]]
    return byte_pairs(tokens, values.get("pattern", "pieces"), values.get("special"))


def _body(ranks: dict[bytes, int], pattern: str, special: dict[str, int]) -> dict[str, Any]:
    """The `tokenizer.json` of a BPE that cuts texts by a pattern and merges by these ranks."""
    ordered = sorted(ranks, key=ranks.__getitem__)
    vocab = {_written(token): ranks[token] for token in ordered} | special
    merges = [[*map(_written, _last_merge(token, ranks))] for token in ordered if len(token) > 1]
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, level]},
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }


def _last_merge(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two tokens whose merge makes this one: the parts that remain after all lower-ranked merges."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        joined = [(ranks.get(a + b, len(ranks)), i) for i, (a, b) in enumerate(pairwise(parts))]
        rank, at = min(joined)
        if rank >= ranks[token]:
            raise TextError("the tokenizer's merges do not follow from its tokens")
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def _byte_of() -> dict[str, int]:
    """The printable character that `tokenizers` writes for each byte → that byte.

    Printable Latin-1 bytes stand for themselves; the others, in order, are written as U+0100, U+0101, …
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTE_OF = _byte_of()
_WRITTEN = {byte: character for character, byte in _BYTE_OF.items()}


def _written(token: bytes) -> str:
    return "".join(_WRITTEN[byte] for byte in token)


def _bytes_of(token: str) -> bytes:
    """A token's bytes as the library decodes them: one per character, or its UTF-8 if one stands for no byte."""
    if all(character in _BYTE_OF for character in token):
        return bytes(_BYTE_OF[character] for character in token)
    return token.encode()


def _panicked(problem: BaseException) -> bool:
    """Whether a library in Rust panicked: its error is not an Exception, so `except Exception` misses it."""
    return type(problem).__name__ == "PanicException"
