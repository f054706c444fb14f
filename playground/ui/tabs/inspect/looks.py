"""Looks: the latest prompts and what the models made of them, so that moving about costs no forward pass."""

from __future__ import annotations

import threading

from ....inspection import Look, look
from ....inspection.example import PROMPT, worked_example
from ...page import Page
from ...prompts import read_prompt

KEPT = 8
KEPT_BYTES = 256_000_000
EXAMPLE_NOTE = (
    "Not the model chosen above, but an example small enough to check with pencil and paper: the prompt “one two "
    "three”, 4 numbers per token, one head of width 2 (a second head is zero), everything in float64."
)


class Looks:
    """A small memory that handlers of all visitors share."""

    def __init__(self, page: Page):
        self.page = page
        self._kept: dict[tuple[str, str], Look] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def look(self, visitor: str | None, model_id: str | None, prompt: str, *, example: bool = False) -> Look:
        """The model's look at this prompt, or with `example` the worked example's at its own. Raises ValueError."""
        if example:
            checkpoint, model_id, prompt = worked_example(), "example", PROMPT
            ids, notes = checkpoint.tokenizer.encode(PROMPT), [EXAMPLE_NOTE]
        else:
            checkpoint = self.page.registry.get(model_id, visitor)
            ids, notes = read_prompt(self.page, checkpoint, prompt if isinstance(prompt, str) else "")
        name = (str(model_id), prompt)
        with self._lock:
            found = self._kept.pop(name, None)
            if found is not None and found.checkpoint is checkpoint:  # not one that training has replaced since
                self._kept[name] = found
                return found
        found = look(checkpoint, ids[-checkpoint.config.context_length :], notes)
        with self._lock:
            self._kept[name] = found
            while len(self._kept) > 1 and (
                len(self._kept) > KEPT or sum(kept.nbytes for kept in self._kept.values()) > KEPT_BYTES
            ):
                del self._kept[next(iter(self._kept))]
        return found
