"""What the tab opens on: a prompt on which a head matters, and beside it one that leads elsewhere."""

from __future__ import annotations

from ....storage import Checkpoint
from ...page import Page
from ...prompts import suggestions

COPYING = {
    "stories": ("Mia had a red kite. Then Tom has the ", "Mia had a red drum. Then Tom has the "),
    "copy": ("cage ca", "bdfe ca"),
}
"""By language, two prompts: what comes next stands in each of them already, so a head has to fetch it."""


def copying(checkpoint: Checkpoint) -> tuple[str, str] | None:
    """Both prompts of this model's language, if it can read them."""
    both = COPYING.get(checkpoint.language.name) if checkpoint.language else None
    return None if both is None or any(map(checkpoint.tokenizer.unknown_parts, both)) else both


def prompts(page: Page, model_id: str | None, visitor: str | None) -> list[str]:
    """Beginnings that suit the model, one that can be broken first."""
    known = suggestions(page, model_id, visitor)
    try:
        first = copying(page.registry.get(model_id, visitor))
    except ValueError:
        return known
    return list(dict.fromkeys([first[0], *known]))[:3] if first else known
