"""The text on which a mixture is judged: one that its run never saw."""

from __future__ import annotations

import torch

from ....service.texts import unseen
from ....storage import Checkpoint
from ...page import Page

LEAST_TOKENS = 64
WINDOWS = 48


def text_for(page: Page, checkpoint: Checkpoint) -> tuple[torch.Tensor, str]:
    """At most WINDOWS windows (N, T + 1) of a text that the run never saw, and a description of the text.

    Raises ValueError if there is none, or too little.
    """
    found = unseen(page.board.source_of(checkpoint), checkpoint)
    if found is None:
        raise ValueError("This model's training text is not available, so there is nothing to test it on")
    ids = [token for token in found.corpus.val.tolist() if token >= 0]
    if len(ids) < LEAST_TOKENS:
        raise ValueError(
            f"The text has only {len(ids)} tokens: at least {LEAST_TOKENS} are needed to say anything about experts"
        )
    T = min(checkpoint.config.context_length, len(ids) - 1)
    n = min((len(ids) - 1) // T, WINDOWS)
    return torch.tensor(ids[: n * T + 1]).unfold(0, T + 1, T), found.words
