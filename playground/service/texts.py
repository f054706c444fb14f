"""Texts that models here learned from: read again for tracing, and their unseen parts, to judge models by."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from ..data import LANGUAGES, Corpus, corpus_from_language, corpus_from_sentences, corpus_from_text, read_file
from ..data.overlap import NEARLY_ALL
from ..data.tokenizers import in_known_case
from ..kept import Kept
from ..storage import Checkpoint
from .limits import Limits
from .runs import LANGUAGE_CHARACTERS, LANGUAGE_VALIDATION, OWN_TEXT, Source, corpus_for

LENGTHS = (
    (LANGUAGE_CHARACTERS, LANGUAGE_VALIDATION), (3_000_000, 80_000), (1_500_000, 20_000), (6_000_000, 200_000),
    (1_000_000, 60_000),
)  # fmt: skip
"""Characters for training and validation: in runs on the page, in shipped models, and in the shell's runs."""
ELSEWHERE = "Its training text is not on this page, so nothing can be traced. Train a model here"
CHANGED = "Its training text has changed since, so nothing can be traced. Train it again"

_read = Kept(entries=12, megabytes=400)


@dataclass(frozen=True)
class TextSpec:
    """The text that a model learned from, described well enough to read it again."""

    sha256: str
    source: Source | None = None
    """None if no run on this page made the model."""
    tokenizer: str = "char"
    vocab_size: int | None = None

    @classmethod
    def of(cls, checkpoint: Checkpoint, spec: Any = None) -> TextSpec:
        """The text spec for a model and, if this server made it, for its run or comparison."""
        sha256 = str(checkpoint.about.get("text_sha256") or "")
        return cls(sha256) if spec is None else cls(sha256, spec.source, spec.tokenizer, spec.vocab_size)


def text_of(checkpoint: Checkpoint, text: TextSpec, limits: Limits) -> Corpus:
    """The corpus that a model learned from. Raises ValueError if it is not known here, or has changed."""
    return _read.get(text, lambda: _read_again(checkpoint, text, limits), owner=checkpoint.model)


def _read_again(checkpoint: Checkpoint, text: TextSpec, limits: Limits) -> Corpus:
    if text.source is not None and text.source.kind not in LANGUAGES:
        corpora: list[Callable[[], Corpus]] = [lambda: corpus_for(text, limits)]
    else:
        language = text.source.kind if text.source else checkpoint.about.get("language")
        unit = checkpoint.tokenizer.kind
        if language in LANGUAGES and unit in ("char", "word"):
            ships = bool(checkpoint.about.get("recorded"))
            corpora = [
                lambda n=n, v=v: corpus_from_language(language, n_characters=n, n_validation=v, unit=unit)
                for n, v in (LENGTHS[1:] if ships else LENGTHS)
            ]
        else:
            corpora = [lambda each=each: each.corpus for each in shipped_texts()]
    for make in corpora:
        corpus = make()
        if text.sha256 in (corpus.sha256, "") and corpus.tokenizer.to_dict() == checkpoint.tokenizer.to_dict():
            return corpus
    raise ValueError(CHANGED if text.source is not None else ELSEWHERE)


# ---- unseen text -----------------------------------------------------------------------------------------------------

TEXTS = Path(__file__).resolve().parents[1] / "data" / "texts"
_CHARACTERS = 20_000
_BEGINNING = 400


@dataclass(frozen=True)
class Unseen:
    """A corpus whose validation part a model never trained on, and a description of that part in words."""

    corpus: Corpus
    words: str


def unseen(source: Source | None, checkpoint: Checkpoint) -> Unseen | None:
    """The held-out text of a run on this source, or else what the checkpoint remembers; None if unknown.

    For a language there is only the validation part: the language itself stands in for its training part.
    """
    if source is not None and source.kind == OWN_TEXT:
        return _read.get(source, lambda: _end_of(source.text, checkpoint), owner=checkpoint.model)
    tokenizer, known = checkpoint.tokenizer, checkpoint.language
    if known is not None:
        ids = torch.tensor(tokenizer.encode(_sample(known.name)), dtype=torch.long)
        words = f"unseen text from “{known.title}”"
        return Unseen(Corpus(known.title, tokenizer, ids[:0], ids, "", known), words)
    digest = checkpoint.about.get("text_sha256")
    for ours in shipped_texts():
        if digest == ours.corpus.sha256 and ours.corpus.tokenizer.to_dict() == tokenizer.to_dict():
            return ours
    return None


def _end_of(text: str, checkpoint: Checkpoint) -> Unseen:
    corpus = corpus_from_text(in_known_case(text, checkpoint.tokenizer), checkpoint.tokenizer)
    new = ", which it never trained on" if corpus.overlap() < NEARLY_ALL else ""
    return Unseen(corpus, f"the last tenth of your text{new}")


def learned(source: Source | None, checkpoint: Checkpoint) -> str:
    """The beginning of a model's training text, or of one like it; empty if that text is unknown."""
    if source is not None and source.kind == OWN_TEXT:
        return source.text[:_BEGINNING]
    digest = checkpoint.about.get("text_sha256")
    if checkpoint.language is not None:
        return checkpoint.language.sample(_BEGINNING, seed=len(checkpoint.name))
    ours = next((each.corpus for each in shipped_texts() if each.corpus.sha256 == digest), None)
    return "" if ours is None else _decoded(ours)


def _decoded(corpus: Corpus) -> str:
    ids = corpus.train[:_BEGINNING].tolist()
    documents = [list(group) for apart, group in itertools.groupby(ids, lambda token: token < 0) if not apart]
    return "\n".join(map(corpus.tokenizer.decode, documents))


@lru_cache(maxsize=8)
def _sample(language: str) -> str:
    """The beginning of the text that runs are validated on: its seed is never used for training text."""
    return LANGUAGES[language].sample(_CHARACTERS, seed=1)


@lru_cache(maxsize=1)
def shipped_texts() -> list[Unseen]:
    """The shipped texts."""
    texts = [corpus_from_text(read_file(path), name=path.stem) for path in sorted(TEXTS.glob("*.txt"))]
    return [
        Unseen(corpus_from_sentences(), "four of the twenty sentences, which it never trained on"),
        *(Unseen(corpus, f"the last tenth of “{corpus.name}”, which it never trained on") for corpus in texts),
    ]
