"""Tokenizers to and from Hugging Face's tokenizer.json, so that AutoTokenizer reads what our models read.

What comes in is taken only where every part of it is understood: a byte-level BPE that cuts texts in one of the
published ways, or the tables that this module writes. Everything else is refused by its name, nothing is approximated.
What goes out reads and writes every text as ours does, but for one rule that stays ours: strings that look like special
tokens are ordinary text.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Library

from ..data.tokenizers import (
    MAX_TOKEN,
    PATTERNS,
    UNKNOWN_CHARACTER,
    UNKNOWN_WORD,
    WORD_PATTERN,
    ByteTokenizer,
    CharTokenizer,
    Tokenizer,
    WordTokenizer,
    byte_stand_ins,
    byte_tokenizer,
    stand_for,
)
from .errors import CheckpointError
from .json_files import read_json

_PRINTABLE = byte_stand_ins()
_OF_WORDS = decoders.Sequence(
    [
        decoders.WordPiece(prefix="\0", cleanup=False),  # a space between any two
        decoders.Fuse(),
        decoders.Replace(Regex(r" (?=[\n.,;:!?)\]}])|(?<=[\n(\[{]) "), ""),
    ]
)

# ---- out -------------------------------------------------------------------------------------------------------------


def tokenizer_files(tokenizer: Tokenizer) -> dict[str, Any]:
    """The files that AutoTokenizer needs, by name, as plain values. Raises CheckpointError where there can be none."""
    if isinstance(tokenizer, CharTokenizer):
        library = _by_table(tokenizer.characters, UNKNOWN_CHARACTER, r"[\s\S]", decoders.Fuse())
    elif isinstance(tokenizer, WordTokenizer):
        odd = next((word for word in tokenizer.words[1:] if not re.fullmatch(WORD_PATTERN, word)), None)
        if odd is not None:
            raise CheckpointError(f"{odd[:40]!r} is among the tokenizer's words, but is no word that it can read")
        library = _by_table(tokenizer.words, UNKNOWN_WORD, _word_pattern(), _OF_WORDS)
    elif isinstance(tokenizer, ByteTokenizer):
        library = _byte_level(tokenizer)
    else:
        raise CheckpointError(f"a tokenizer of kind {tokenizer.kind!r} has no counterpart in Transformers")
    # without an unk_token: AutoTokenizer would find that string in texts
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    return {"tokenizer.json": json.loads(library.to_str()), "tokenizer_config.json": settings}


def _by_table(tokens: Iterable[str], unknown: str, pattern: str, decoder: decoders.Decoder) -> Library:
    """One id per piece that the pattern finds."""
    library = Library(models.WordLevel({token: i for i, token in enumerate(tokens)}, unknown))
    library.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    library.decoder = decoder
    return library


@functools.cache
def _word_pattern() -> str:
    r"""WORD_PATTERN for Oniguruma, whose \w and \s know another Unicode than Python's: both are spelt out as ranges."""
    letters, spaces = _ranges(r"[^\W_]"), _ranges(r"\s")
    return rf"\n|[{letters}]+(?:['’][{letters}]+)*|[^_{letters}{spaces}]|_"


def _ranges(kind: str) -> str:
    """The characters that Python's regular expressions count to this kind, as ranges of a character class."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    found = [match.span() for match in re.finditer(f"{kind}+", every)]
    return "".join(rf"\x{{{first:X}}}-\x{{{end - 1:X}}}" for first, end in found)


def _byte_level(tokenizer: ByteTokenizer) -> Library:
    ranks = tokenizer.encoding._mergeable_ranks
    ordered = sorted(ranks, key=ranks.__getitem__)
    vocab = {_written(token): ranks[token] for token in ordered} | tokenizer.encoding._special_tokens
    merges = [tuple(map(_written, _last_merge(token, ranks))) for token in ordered if len(token) > 1]
    library = Library(models.BPE(vocab, merges))
    cut = pre_tokenizers.Split(Regex(PATTERNS[tokenizer.pattern]), "isolated")
    library.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(False, use_regex=False)])
    library.decoder = decoders.ByteLevel(add_prefix_space=False, use_regex=False)
    return library


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


def _written(token: bytes) -> str:
    return "".join(_PRINTABLE[byte] for byte in token)


# ---- in --------------------------------------------------------------------------------------------------------------


def tokenizer_from_files(folder: Path) -> Tokenizer:
    """A tokenizer of ours that reads just like the folder's. Raises CheckpointError that names what it cannot read."""
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
    """Refuse settings beside a tokenizer.json by which Transformers would change what it reads."""
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
    known = {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor"}
    known |= {"decoder", "model"}
    if set(body) - known:
        raise ValueError(f"it has a part that is not known, {min(set(body) - known)[:60]!r}")
    for name, fine in (
        ("truncation", lambda part: part is None),
        ("padding", lambda part: part is None),
        ("normalizer", lambda part: part is None),
        # it tells where tokens lie in a text, and adds none
        ("post_processor", lambda part: part is None or part["type"] == "ByteLevel"),
        ("decoder", lambda part: part is not None and part["type"] == "ByteLevel"),
    ):
        if not fine(part := body.get(name)):
            what = f"the {name} {_kind(part) or ''}".rstrip() if part is not None else f"a missing {name}"
            raise ValueError(f"{what} is not understood, and texts would be read in another way than by its model")
    return _from_byte_level(model, _pattern(body["pre_tokenizer"]), body.get("added_tokens") or [])


def _from_table(body: dict[str, Any]) -> Tokenizer:
    """The tokenizer of characters or of words that `_by_table` has written."""
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
    """The same with one mark for each class of ranges: another Python knows more letters."""
    split = dict(body["pre_tokenizer"])
    pattern = re.sub(r"(\\x\{[0-9A-F]{1,6}\}-?){2,}", "…", split["pattern"]["Regex"])
    return {**body, "pre_tokenizer": {**split, "pattern": {"Regex": pattern}}}


def _from_byte_level(model: dict[str, Any], pattern: str, added: list[dict[str, Any]]) -> ByteTokenizer:
    for name, value in model.items():
        if name not in _OF_BPE or not _OF_BPE[name](value):
            raise ValueError(f"a BPE with {name} {str(value)[:40]!r} is not understood")
    found = next((t["content"] for t in added if not t.get("special")), None)
    if found is not None:
        raise ValueError(f"the added token {found[:60]!r} is found in texts before they are cut, which is not known")
    special = {token["content"]: token["id"] for token in added}
    vocab = model["vocab"]
    if len({*special.values()}) < len(added) or any(vocab.get(text, i) != i for text, i in special.items()):
        raise ValueError("the added tokens' ids are not their own")
    every = vocab | special
    if sorted(every.values()) != list(range(len(every))):
        raise ValueError("the tokenizer's ids have gaps")
    by_merges = _parsed(model)
    merges = json.loads(by_merges.to_str())["model"]["merges"]
    made = {a + b for a, b in merges}
    apart = set(special)
    if not model.get("ignore_merges"):
        # tokens that nothing merges into come of no text, just as special ones do here
        unmade = {token for token in vocab if len(token) > 1 and token not in made and token not in special}
        special |= {stand_for(token).decode(): vocab[token] for token in unmade}
        apart |= unmade
    ordered = sorted((token for token in vocab if token not in apart), key=vocab.__getitem__)
    # tiktoken merges by rank, and any two tokens whose sum is one: the same where ids are in the order of the merges,
    # and where by the merges below each token becomes itself
    if [vocab[a + b] for a, b in merges] != sorted({vocab[a + b] for a, b in merges}):
        raise ValueError("the tokenizer's ids are not in the order of its merges, which is not supported")
    tokenizer = byte_tokenizer([stand_for(token) for token in ordered], pattern, special)
    for token in ordered:
        if len(by_merges.model.tokenize(token)) != 1:
            raise ValueError(f"the merges never make the token {token[:60]!r}, which is not supported")
    return tokenizer


def _parsed(model: dict[str, Any]) -> Library:
    """The model alone, as its own library reads it."""
    try:
        return Library.from_str(
            json.dumps({"version": "1.0", "model": model | {"type": "BPE", "ignore_merges": False}})
        )
    except Exception as problem:  # the library has no class of its own for what it refuses
        raise ValueError(str(problem)[:200]) from problem


_OF_BPE: dict[str, Callable[[Any], bool]] = {
    "type": lambda value: value == "BPE",
    "vocab": lambda value: isinstance(value, dict) and all(type(number) is int for number in value.values()),
    "merges": lambda value: isinstance(value, list),
    "dropout": lambda value: value is None or value == 0,
    "unk_token": lambda value: True,  # bytes are never unknown
    "fuse_unk": lambda value: True,
    "byte_fallback": lambda value: True,  # for what is no token; every byte is one
    "continuing_subword_prefix": lambda value: value in (None, ""),
    "end_of_word_suffix": lambda value: value in (None, ""),
    "ignore_merges": lambda value: True,  # a piece that is a token is that token; its merges come to the same
}
"""What a BPE may say about itself, and which values mean what ours does."""

_FORMS = {pattern: name for name, pattern in PATTERNS.items()} | {
    # as others write them
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s": "gpt2",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+": (
        "qwen2"
    ),
}


def _pattern(part: Any) -> str:
    """The name of the published pattern that a pre-tokenizer cuts by. Raises ValueError for any other."""
    parts = part["pretokenizers"] if _kind(part) == "Sequence" else [part]
    *cuts, level = parts if isinstance(parts, list) and parts else [None]
    if _kind(level) != "ByteLevel":
        raise ValueError(f"the pre_tokenizer {_kind(level)} is not understood: only byte-level BPE can be opened here")
    if level.get("add_prefix_space", True):
        raise ValueError("the pre_tokenizer ByteLevel with add_prefix_space is not understood")
    by_gpt2 = level.get("use_regex", True)
    if not cuts and by_gpt2:
        return "gpt2"
    if len(cuts) == 1 and by_gpt2 and cuts[0] == {"type": "Digits", "individual_digits": True}:
        return "gpt2, single digits"
    if len(cuts) == 1 and not by_gpt2 and _kind(cuts[0]) == "Split":
        cut = cuts[0]
        regex = cut["pattern"].get("Regex")
        if regex in _FORMS and cut.get("behavior") == "Isolated" and not cut.get("invert"):
            return _FORMS[regex]
        raise ValueError(f"the pre_tokenizer's pattern {str(cut['pattern'])[:80]} is none of those known here")
    names = " and ".join(str(_kind(cut)) for cut in parts)
    raise ValueError(f"the pre_tokenizer {names} is not understood")


def _kind(part: Any) -> Any:
    return str(part.get("type"))[:40] if isinstance(part, dict) else str(part)[:40]
