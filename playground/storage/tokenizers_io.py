"""Tokenizers to and from Hugging Face's tokenizer.json, so that AutoTokenizer reads what our models read."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import tiktoken

from ..data.tokenizers import (
    PIECES,
    UNKNOWN_CHARACTER,
    UNKNOWN_WORD,
    WORD_PATTERN,
    ByteTokenizer,
    CharTokenizer,
    Tokenizer,
    WordTokenizer,
    byte_stand_ins,
)
from .checkpoint import MAX_JSON_BYTES, CheckpointError

_PRINTABLE = byte_stand_ins()


def tokenizer_files(tokenizer: Tokenizer) -> dict[str, Any]:
    """The files that AutoTokenizer needs, by name, as plain values."""
    if isinstance(tokenizer, CharTokenizer):
        body = _by_table(tokenizer.characters, UNKNOWN_CHARACTER, r"[\s\S]", decoder={"type": "Fuse"})
    elif isinstance(tokenizer, WordTokenizer):
        body = _by_table(tokenizer.words, UNKNOWN_WORD, WORD_PATTERN, decoder=None)
    elif isinstance(tokenizer, ByteTokenizer):
        body = _byte_level(tokenizer)
    else:
        raise CheckpointError(f"a tokenizer of kind {tokenizer.kind!r} has no counterpart in Transformers")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    if not isinstance(tokenizer, ByteTokenizer):
        settings["unk_token"] = UNKNOWN_CHARACTER if isinstance(tokenizer, CharTokenizer) else UNKNOWN_WORD
    return {"tokenizer.json": body, "tokenizer_config.json": settings}


def tokenizer_from_files(folder: Path) -> Tokenizer:
    """A tokenizer of ours that reads like the folder's byte-level BPE. Raises CheckpointError for other kinds."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(f"{folder} has no tokenizer.json: save its fast tokenizer beside the model")
    if path.stat().st_size > MAX_JSON_BYTES:
        raise CheckpointError("tokenizer.json is too large to be what it says")
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        model = body["model"]
        if model["type"] == "BPE" and "ByteLevel" in json.dumps(body.get("pre_tokenizer")):
            return _from_byte_level(body)
        if model["type"] == "WordLevel":
            ordered = [token for token, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
            if ordered[-1] == UNKNOWN_CHARACTER and all(len(token) == 1 for token in ordered):
                return CharTokenizer("".join(ordered[:-1]))
            if ordered[0] == UNKNOWN_WORD:
                return WordTokenizer(ordered[1:])
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise CheckpointError(f"tokenizer.json cannot be read: {problem}") from problem
    raise CheckpointError("only byte-level BPE tokenizers, such as GPT-2's, can be opened here")


def _by_table(tokens, unknown: str, pattern: str, decoder) -> dict[str, Any]:
    """One id per piece that the pattern finds."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": split, "post_processor": None, "decoder": decoder,
        "model": {"type": "WordLevel", "vocab": {token: i for i, token in enumerate(tokens)}, "unk_token": unknown},
    }  # fmt: skip


def _byte_level(tokenizer: ByteTokenizer) -> dict[str, Any]:
    ranks = tokenizer.encoding._mergeable_ranks
    ordered = sorted(ranks, key=ranks.__getitem__)
    vocab = {_written(token): ranks[token] for token in ordered}
    merges = [[_written(a), _written(b)] for a, b in (_last_merge(token, ranks) for token in ordered if len(token) > 1)]
    for special, number in tokenizer.encoding._special_tokens.items():
        vocab.setdefault(special, number)
    pattern = {
        "type": "Split",
        "pattern": {"Regex": tokenizer.encoding._pat_str},
        "behavior": "Isolated",
        "invert": False,
    }
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [pattern, level]}, "post_processor": None,
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": False},
    }  # fmt: skip


def _last_merge(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two tokens whose merge makes this one: what is left when only lower-ranked merges are applied to it."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        joined = [(ranks.get(a + b, len(ranks)), i) for i, (a, b) in enumerate(pairwise(parts))]
        rank, at = min(joined)
        if rank >= ranks[token]:
            raise CheckpointError("the tokenizer's merges cannot be told from its tokens")
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def _from_byte_level(body: dict[str, Any]) -> ByteTokenizer:
    known = {character: byte for byte, character in _PRINTABLE.items()}
    vocab = dict(body["model"]["vocab"])
    special = {t["content"]: int(t["id"]) for t in body.get("added_tokens", [])}
    ranks = {bytes(known[c] for c in token): int(i) for token, i in vocab.items() if token not in special}
    ids = sorted({*ranks.values(), *special.values()})
    if ids != list(range(len(ids))):
        raise CheckpointError("the tokenizer's ids have gaps")
    # tiktoken merges by rank; ids in merge order are ranks, as in GPT-2
    merges = [m if isinstance(m, list) else m.split(" ") for m in body["model"]["merges"]]
    made = [bytes(known[c] for c in a + b) for a, b in merges]
    if [ranks[token] for token in made] != sorted(ranks[token] for token in made):
        raise CheckpointError("the tokenizer's ids are not in the order of its merges, which is not supported")
    pattern = _pattern(body["pre_tokenizer"])
    return ByteTokenizer(
        tiktoken.Encoding("bpe", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special), "bpe"
    )


def _pattern(pre_tokenizer: dict[str, Any]) -> str:
    """The regular expression that cuts a text before merging."""
    for part in pre_tokenizer.get("pretokenizers", [pre_tokenizer]):
        if part["type"] == "Split":
            return part["pattern"]["Regex"]
        if part["type"] == "ByteLevel" and part.get("use_regex", True):
            # the one that Hugging Face's ByteLevel stands for, published with GPT-2
            return r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
    return PIECES


def _written(token: bytes) -> str:
    return "".join(_PRINTABLE[byte] for byte in token)
