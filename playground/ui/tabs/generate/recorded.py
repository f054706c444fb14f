"""The text that the panel opens with: written once per model, with a fixed seed and the rules of the form."""

from __future__ import annotations

import threading
from typing import Any

from ....kept import Kept
from ....storage import Checkpoint
from ...page import Page
from ...panel import Asked
from ...prompts import suggestions
from .selection import Selection
from .writing import written

_texts = Kept(entries=200, megabytes=16)


def recorded(page: Page, visitor: str, model_id: str, checkpoint: Checkpoint) -> dict[str, Any]:
    """The model's first text, as the lines that `/write` would send."""

    def write() -> list[dict[str, Any]]:
        prompt = suggestions(page, model_id, visitor)[0]
        asked = Asked(visitor, Selection.first(page.limits).moved(model=model_id, prompt=prompt).to_dict())
        return list(written(page, asked, None, threading.Event()))

    # a model that others have under another id writes the same
    lines = _texts.get(checkpoint.history.last_step, write, owner=checkpoint.model)
    head = {"head": {**lines[0]["head"], "model": model_id}}
    return {"model": model_id, "recorded": model_id.startswith("shipped-"), "lines": [head, *lines[1:]]}
