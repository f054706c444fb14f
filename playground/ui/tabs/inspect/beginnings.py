"""What the tab opens on: a prompt on which a head matters."""

from __future__ import annotations

from ....storage import Checkpoint
from ...page import Page
from ...prompts import suggestions

COPYING = {"stories": "Mia had a red kite. Then Tom has the ", "copy": "bdfh bdfh\ncage c"}
"""By language: what comes next stands in the prompt already, so a head has to fetch it."""


def copying(checkpoint: Checkpoint) -> str | None:
    """The prompt for this model's language, if it can read it."""
    language = checkpoint.about.get("language")
    prompt = COPYING.get(language) if isinstance(language, str) else None
    return None if prompt is None or checkpoint.tokenizer.unknown_parts(prompt) else prompt


def prompts(page: Page, model_id: str | None, visitor: str | None) -> list[str]:
    """Beginnings that suit the model, one that can be broken first."""
    known = suggestions(page, model_id, visitor)
    try:
        first = copying(page.registry.get(model_id, visitor))
    except ValueError:
        return known
    return list(dict.fromkeys([first, *known]))[:3] if first else known
