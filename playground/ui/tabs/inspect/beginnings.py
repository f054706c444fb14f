"""What the tab opens on: a prompt on which a head matters, and beside it one that leads elsewhere."""

from __future__ import annotations

from ....interventions.pairs import WRITTEN
from ...page import Page
from ...prompts import suggestions

COPYING = {"stories": WRITTEN["stories"][0][0], "copy": WRITTEN["induction"][0][0]}
"""By language, a prompt that already contains what comes next, so a head has to fetch it."""


def prompts(page: Page, model_id: str | None, visitor: str | None) -> list[str]:
    """Beginnings that suit the model, one that can be broken first."""
    known = suggestions(page, model_id, visitor)
    try:
        checkpoint = page.registry.get(model_id, visitor)
    except ValueError:
        return known
    first = COPYING.get(checkpoint.language.name) if checkpoint.language else None
    if first is None or checkpoint.tokenizer.unknown_parts(first):
        return known
    return list(dict.fromkeys([first, *known]))[:3]
