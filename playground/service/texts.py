"""Texts that models here learned from, read again: of runs, of what ships, of languages by the hash of their text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..data import LANGUAGES, Corpus, corpus_from_language
from ..kept import Kept
from ..storage import Checkpoint
from .limits import Limits
from .runs import LANGUAGE_CHARACTERS, LANGUAGE_VALIDATION, Source, corpus_for
from .unseen import shipped_texts

LENGTHS = (
    (LANGUAGE_CHARACTERS, LANGUAGE_VALIDATION), (3_000_000, 80_000), (1_500_000, 20_000), (6_000_000, 200_000),
    (1_000_000, 60_000),
)  # fmt: skip
"""Characters to learn from and to judge by: of runs on the page, of the models that ship, and of the shell's runs."""
ELSEWHERE = "Its training text is not on this page, so nothing can be traced. Train a model here"
CHANGED = "Its training text has changed since, so nothing can be traced. Train it again"

_read = Kept(entries=6, megabytes=400)


@dataclass(frozen=True)
class TextSpec:
    """What a model learned from, enough to read it again."""

    sha256: str
    source: Source | None = None
    """None where no run on this page made the model."""
    tokenizer: str = "char"
    vocab_size: int | None = None

    @classmethod
    def of(cls, checkpoint: Checkpoint, spec: Any = None) -> TextSpec:
        """Of a model, and of the run or comparison that made it, if one here did."""
        sha256 = str(checkpoint.about.get("text_sha256") or "")
        return cls(sha256) if spec is None else cls(sha256, spec.source, spec.tokenizer, spec.vocab_size)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TextSpec:
        """The inverse of `to_dict`."""
        return cls(**{**values, "source": Source(**values["source"]) if values["source"] else None})


def text_of(checkpoint: Checkpoint, text: TextSpec, limits: Limits) -> Corpus:
    """The corpus that a model learned from. Raises ValueError where it is not known here, or is another one now."""
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
