"""Looks: the latest prompts and what the models made of them, so that moving about costs no forward pass."""

from __future__ import annotations

from collections.abc import Sequence

from ....inspection import Look, look
from ....inspection.example import EXAMPLES, worked_example
from ....kept import Kept
from ....words.examples import EXAMPLE_NOTES
from ...page import Page
from ...prompts import read_prompt

KEPT = 64


class Looks:
    """A small memory that all visitors share."""

    def __init__(self, page: Page):
        self.page = page
        self._examples = {name: worked_example(name) for name in EXAMPLES}
        self._kept = Kept(entries=KEPT)

    def __len__(self) -> int:
        return len(self._kept)

    def look(self, visitor: str | None, model_id: str | None, prompt: str, *, example: str | None = None) -> Look:
        """The model's look at this prompt, or that of a worked example at its own. Raises ValueError."""
        return self.read(visitor, model_id, prompt, example=example)[0]

    def read(
        self, visitor: str | None, model_id: str | None, prompt: str, *, example: str | None = None
    ) -> tuple[Look, Sequence[str]]:
        """The same, and what a visitor should know about how the prompt was read. Raises ValueError."""
        if example in EXAMPLES:
            checkpoint, prompt = self._examples[example], EXAMPLES[example].prompt
            ids, notes = checkpoint.tokenizer.encode(prompt), [EXAMPLE_NOTES[example]]
        else:
            checkpoint = self.page.registry.get(model_id, visitor)
            ids, notes = read_prompt(self.page, checkpoint, prompt if isinstance(prompt, str) else "")
        # by the checkpoint, too: one that training has replaced since is another one
        name, ids = (id(checkpoint), prompt), ids[-checkpoint.config.context_length :]
        return self._kept.get(name, lambda: look(checkpoint, ids), owner=checkpoint.model), notes
