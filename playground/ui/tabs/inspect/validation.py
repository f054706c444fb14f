"""Unseen text to judge a model by: what its run held out, as far as that is known here, else its language's or none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from ....data import LANGUAGES, Corpus, corpus_from_sentences, corpus_from_text, read_file
from ....inspection import Look
from ....service.runs import OWN_TEXT
from ....storage import Checkpoint
from ...page import Page

TOKENS = 2048
"""Predictions to judge a change by: enough to see a hundredth of a nat, few enough for two seconds."""
TEXTS = Path(__file__).resolve().parents[3] / "data" / "texts"
_CHARACTERS = 20_000


@dataclass(frozen=True)
class Judged:
    """Windows (N, T) and the tokens that follow, and what they are, in words."""

    inputs: torch.Tensor
    targets: torch.Tensor
    words: str
    stand_in: bool = False
    """Whether it is only the prompt, for want of anything better."""


def held_out(page: Page, look: Look) -> Judged:
    """The model's validation text; where nobody knows it any more, the prompt itself, and says so.

    Raises ValueError where that is a single token.
    """
    checkpoint = look.checkpoint
    found = _of_run(page, checkpoint) or _of_record(checkpoint)
    if found is not None:
        corpus, words = found
        T = checkpoint.config.context_length
        inputs, targets = corpus.windows("val", T, max(2, TOKENS // T))
        return Judged(inputs, targets, words)
    if look.length < 2:
        raise ValueError("the text this model was judged by is not here, and one token predicts nothing: type more")
    ids = torch.tensor([look.ids])
    words = "the prompt itself, since the text this model was judged by is not here"
    return Judged(ids[:, :-1], ids[:, 1:], words, stand_in=True)


def _of_run(page: Page, checkpoint: Checkpoint) -> tuple[Corpus, str] | None:
    """The held-out tenth of a visitor's own text."""
    spec = page.board.spec_of(checkpoint)
    if spec is None or spec.source.kind != OWN_TEXT:
        return None
    corpus = corpus_from_text(spec.source.text, checkpoint.tokenizer)
    return corpus, "the last tenth of your text, which it never trained on"


def _of_record(checkpoint: Checkpoint) -> tuple[Corpus, str] | None:
    """Text of the language it learned, or of one of our own texts, by what the checkpoint remembers."""
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
