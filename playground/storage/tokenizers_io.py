"""Tokenizers to and from Hugging Face's tokenizer.json, so that AutoTokenizer reads what our models read.

Two forms can be read: a byte-level BPE that cuts texts in published ways, which the library then runs, or a table that
this module has written. Everything else is refused by name; nothing is approximated. What is written reads every text
as ours does, except for one rule that only we keep: strings that look like special tokens are ordinary text.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Library

from ..data.byte_pairs import MAX_TOKEN, ByteTokenizer, open_library
from ..data.tokenizers import (
    UNKNOWN_CHARACTER,
    UNKNOWN_WORD,
    WORD_PATTERN,
    CharTokenizer,
    Tokenizer,
    WordTokenizer,
)
from .errors import CheckpointError
from .json_files import read_json

_OF_WORDS = decoders.Sequence(
    [
        decoders.WordPiece(prefix="\0", cleanup=False),  # a space between any two words
        decoders.Fuse(),
        decoders.Replace(Regex(r" (?=[\n.,;:!?)\]}])|(?<=[\n(\[{]) "), ""),
    ]
)

# ---- out -------------------------------------------------------------------------------------------------------------


def tokenizer_files(tokenizer: Tokenizer) -> dict[str, Any]:
    """The files that AutoTokenizer needs, by name, as plain values. Raises CheckpointError if they cannot be made."""
    if isinstance(tokenizer, CharTokenizer):
        body = _by_table(tokenizer.characters, UNKNOWN_CHARACTER, r"[\s\S]", decoders.Fuse())
    elif isinstance(tokenizer, WordTokenizer):
        odd = next((word for word in tokenizer.words[1:] if not re.fullmatch(WORD_PATTERN, word)), None)
        if odd is not None:
            raise CheckpointError(f"{odd[:40]!r} is among the tokenizer's words, but is no word that it can read")
        body = _by_table(tokenizer.words, UNKNOWN_WORD, _word_pattern(), _OF_WORDS)
    elif isinstance(tokenizer, ByteTokenizer):
        body = tokenizer.library()
    else:
        raise CheckpointError(f"a tokenizer of kind {tokenizer.kind!r} has no counterpart in Transformers")
    # without an unk_token: AutoTokenizer would find that string in texts
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    return {"tokenizer.json": body, "tokenizer_config.json": settings}


def _by_table(tokens: Iterable[str], unknown: str, pattern: str, decoder: decoders.Decoder) -> dict[str, Any]:
    """One id per piece that the pattern finds."""
    library = Library(models.WordLevel({token: i for i, token in enumerate(tokens)}, unknown))
    library.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    library.decoder = decoder
    return json.loads(library.to_str())


@functools.cache
def _word_pattern() -> str:
    r"""WORD_PATTERN for Oniguruma, whose \w and \s use another Unicode version than Python's: both become ranges."""
    letters, spaces = _ranges(r"[^\W_]"), _ranges(r"\s")
    return rf"\n|[{letters}]+(?:['’][{letters}]+)*|[^_{letters}{spaces}]|_"


def _ranges(kind: str) -> str:
    """The characters that Python's regular expressions put in this class, as ranges of a character class."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    found = [match.span() for match in re.finditer(f"{kind}+", every)]
    return "".join(rf"\x{{{first:X}}}-\x{{{end - 1:X}}}" for first, end in found)


# ---- in --------------------------------------------------------------------------------------------------------------


def tokenizer_from_files(folder: Path) -> Tokenizer:
    """A tokenizer of ours that reads just like the folder's. Raises a CheckpointError naming what it cannot read."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(f"{folder} has no tokenizer.json: save its fast tokenizer beside the model")
    body, beside = read_json(path), folder / "tokenizer_config.json"
    _check_beside(read_json(beside) if beside.is_file() else {})
    try:
        return _tokenizer(body)
    except ValueError as problem:
        raise CheckpointError(f"tokenizer.json cannot be read: {problem}") from problem
    except (KeyError, IndexError, TypeError, AttributeError) as problem:
        raise CheckpointError("tokenizer.json cannot be read: a part of it is not what it should be") from problem


def _check_beside(settings: Any) -> None:
    """Refuse settings beside a tokenizer.json that would make Transformers read texts differently."""
    if not isinstance(settings, dict):
        raise CheckpointError("tokenizer_config.json is not a table of settings")
    for name in ("add_prefix_space", "add_bos_token", "add_eos_token", "do_lower_case"):
        if settings.get(name):
            raise CheckpointError(
                f"tokenizer_config.json has {name}, which is not understood: "
                "texts would be read in another way than by its model"
            )


def _tokenizer(body: dict[str, Any]) -> Tokenizer:
    model = body["model"]
    kind = model.get("type", "BPE" if "merges" in model else None)
    if kind == "WordLevel":
        return _from_table(body)
    if kind != "BPE":
        raise ValueError("only byte-level BPE tokenizers, such as GPT-2's, can be opened here")
    return open_library(body)


def _from_table(body: dict[str, Any]) -> Tokenizer:
    """The character or word tokenizer that `_by_table` has written."""
    vocab = body["model"]["vocab"]
    ordered = sorted(vocab, key=vocab.__getitem__)
    if [vocab[token] for token in ordered] != list(range(len(ordered))):
        raise ValueError("the tokenizer's ids have gaps")
    if not all(0 < len(token) <= MAX_TOKEN for token in ordered):
        raise ValueError(f"a token has 1 to {MAX_TOKEN:,} characters")
    made: CharTokenizer | WordTokenizer | None = None
    if ordered[-1] == UNKNOWN_CHARACTER and all(len(token) == 1 for token in ordered):
        made = CharTokenizer("".join(ordered[:-1]))
    elif ordered[0] == UNKNOWN_WORD:
        made = WordTokenizer(ordered[1:])
    if made is None or _without_letters(body) != _without_letters(tokenizer_files(made)["tokenizer.json"]):
        raise ValueError("a table of words is opened only where it was exported here")
    return made


def _without_letters(body: dict[str, Any]) -> dict[str, Any]:
    """The pattern with a mark in place of each class of ranges, since another Python may know more letters."""
    split = dict(body["pre_tokenizer"])
    pattern = re.sub(r"(\\x\{[0-9A-F]{1,6}\}-?){2,}", "…", split["pattern"]["Regex"])
    return {**body, "pre_tokenizer": {**split, "pattern": {"Regex": pattern}}}
