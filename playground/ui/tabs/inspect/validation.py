"""Unseen text to judge a model by: what its run held out, as far as that is known here, else its language's or none."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ....data import Corpus, corpus_from_text
from ....inspection import Look
from ....service.runs import OWN_TEXT
from ....service.unseen import unseen_text
from ....storage import Checkpoint
from ...page import Page

TOKENS = 2048
"""Predictions to judge a change by: enough to see a hundredth of a nat, few enough for two seconds."""


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
    found = of_run(page, checkpoint) or unseen_text(checkpoint)
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


def of_run(page: Page, checkpoint: Checkpoint) -> tuple[Corpus, str] | None:
    """The held-out tenth of a visitor's own text."""
    spec = page.board.spec_of(checkpoint)
    if spec is None or spec.source.kind != OWN_TEXT:
        return None
    corpus = corpus_from_text(spec.source.text, checkpoint.tokenizer)
    return corpus, "the last tenth of your text, which it never trained on"
