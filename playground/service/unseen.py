"""Unseen text to judge a model by, by what its checkpoint remembers: its language's, or the end of one of our texts."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import torch

from ..data import LANGUAGES, Corpus, corpus_from_sentences, corpus_from_text, read_file
from ..storage import Checkpoint

TEXTS = Path(__file__).resolve().parents[1] / "data" / "texts"
_CHARACTERS = 20_000


def unseen_text(checkpoint: Checkpoint) -> tuple[Corpus, str] | None:
    """A corpus whose validation text the model never trained on, and what that is, in words; None if nobody knows."""
    about, tokenizer = checkpoint.about, checkpoint.tokenizer
    language = about.get("language")
    if isinstance(language, str) and language in LANGUAGES:
        ids = torch.tensor(tokenizer.encode(_sample(language)), dtype=torch.long)
        corpus = Corpus(LANGUAGES[language].title, tokenizer, ids, ids, "")
        return corpus, f"text of the language “{LANGUAGES[language].title}” that it never trained on"
    for corpus, words in _ours():
        if about.get("text_sha256") == corpus.sha256 and corpus.tokenizer.to_dict() == tokenizer.to_dict():
            return corpus, words
    return None


@lru_cache(maxsize=8)
def _sample(language: str) -> str:
    """The beginning of the text that runs are validated on: its seed is never used for training text."""
    return LANGUAGES[language].sample(_CHARACTERS, seed=1)


@lru_cache(maxsize=1)
def _ours() -> list[tuple[Corpus, str]]:
    sentences = corpus_from_sentences()
    texts = [corpus_from_text(read_file(path), name=path.stem) for path in sorted(TEXTS.glob("*.txt"))]
    return [
        (sentences, "the four of the twenty sentences that it never trained on"),
        *((corpus, f"the last tenth of “{corpus.name}”, which it never trained on") for corpus in texts),
    ]
