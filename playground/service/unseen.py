"""Unseen text to judge a model by: what its run held out, as far as that is known here, else its language's."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from ..data import LANGUAGES, Corpus, corpus_from_sentences, corpus_from_text, read_file
from ..storage import Checkpoint
from .runs import OWN_TEXT, Source

TEXTS = Path(__file__).resolve().parents[1] / "data" / "texts"
_CHARACTERS = 20_000
_BEGINNING = 400


@dataclass(frozen=True)
class Unseen:
    """A corpus whose validation part a model never trained on, and a description of that part in words."""

    corpus: Corpus
    words: str


def unseen(source: Source | None, checkpoint: Checkpoint) -> Unseen | None:
    """What a run on this source held out, else what the checkpoint remembers; None where nobody knows it any more.

    Of a language there is the validation part alone: for its training part there is the language.
    """
    if source is not None and source.kind == OWN_TEXT:
        corpus = corpus_from_text(source.text, checkpoint.tokenizer)
        return Unseen(corpus, "the last tenth of your text, which it never trained on")
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


def learned(source: Source | None, checkpoint: Checkpoint) -> str:
    """The beginning of a text like that which a model learned from; empty where nobody knows it any more."""
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


def beside_the_run(found: Unseen, checkpoint: Checkpoint, windows: int) -> str:
    """That its run's validation loss is another number than that of so many windows; empty where they are all."""
    loss, corpus = checkpoint.history.val_loss, found.corpus
    if loss is None or not math.isfinite(loss):
        return ""
    # of a language, the text is the beginning of the one that its runs are judged by
    if corpus.language is None and len(corpus.windows("val", checkpoint.config.context_length)[0]) <= windows:
        return ""
    return f"; its run's validation loss, {loss:.4f}, was measured on other windows"


@lru_cache(maxsize=8)
def _sample(language: str) -> str:
    """The beginning of the text that runs are validated on: its seed is never used for training text."""
    return LANGUAGES[language].sample(_CHARACTERS, seed=1)


@lru_cache(maxsize=1)
def shipped_texts() -> list[Unseen]:
    """The texts that ship."""
    texts = [corpus_from_text(read_file(path), name=path.stem) for path in sorted(TEXTS.glob("*.txt"))]
    return [
        Unseen(corpus_from_sentences(), "four of the twenty sentences, which it never trained on"),
        *(Unseen(corpus, f"the last tenth of “{corpus.name}”, which it never trained on") for corpus in texts),
    ]
