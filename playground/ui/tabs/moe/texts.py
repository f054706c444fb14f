"""Texts on which a mixture is judged: a visitor's own, or text that its run never saw."""

from __future__ import annotations

import torch

from ....service.texts import unseen
from ....storage import Checkpoint
from ...page import Page

LEAST_TOKENS = 64
WINDOWS = 48


def text_for(page: Page, checkpoint: Checkpoint, pasted: str = "") -> tuple[torch.Tensor, str]:
    """Windows (N, T + 1) of a text that suits the model, and a description of the text.

    A pasted text comes first; then text that its run never saw; then what the model wrote. Raises ValueError if
    there is none, or too little.
    """
    T = checkpoint.config.context_length
    if pasted and pasted.strip():
        page.limits.check_text(pasted)
        return _windows(checkpoint.tokenizer.encode(pasted), T), "your text"
    found = unseen(page.board.source_of(checkpoint), checkpoint)
    if found is not None:
        return _windows(found.corpus.val.tolist(), T), found.words
    written = "".join(str(sample.get("text", "")) for sample in checkpoint.history.samples[-3:])
    if written:
        return _windows(checkpoint.tokenizer.encode(written), T), "what the model itself wrote while it trained"
    raise ValueError("This model's training text is not available, so there is nothing to test it on: choose another")


def _windows(ids: list[int], T: int) -> torch.Tensor:
    """At most WINDOWS windows (N, T + 1) cut from a list of tokens; a text shorter than one makes a short one."""
    ids = [token for token in ids if token >= 0]
    if len(ids) < LEAST_TOKENS:
        raise ValueError(
            f"The text has only {len(ids)} tokens: at least {LEAST_TOKENS} are needed to say anything about experts"
        )
    T = min(T, len(ids) - 1)
    n = min((len(ids) - 1) // T, WINDOWS)
    return torch.tensor(ids[: n * T + 1]).unfold(0, T + 1, T)
