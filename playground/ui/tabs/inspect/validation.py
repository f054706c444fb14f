"""Windows of unseen text to judge a model by; where nobody knows any, the prompt."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ....inspection import Look
from ....service.texts import unseen
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


def held_out(page: Page, look: Look, tokens: int = TOKENS) -> Judged:
    """The model's validation text, about so many tokens of it; where nobody knows it any more, the prompt itself.

    Raises ValueError where that is a single token.
    """
    checkpoint = look.checkpoint
    found = unseen(page.board.source_of(checkpoint), checkpoint)
    if found is not None:
        T = checkpoint.config.context_length
        most = max(2, tokens // T)
        inputs, targets = found.corpus.windows("val", T, most)
        return Judged(inputs, targets, found.words)
    if look.length < 2:
        raise ValueError("this model's validation text is not available, and one token predicts nothing: type more")
    ids = torch.tensor([look.ids])
    words = "the prompt itself, since this model's validation text is not available"
    return Judged(ids[:, :-1], ids[:, 1:], words, stand_in=True)
