"""What the tab opens on: a prompt on which a head matters, and the sentence that says which."""

from __future__ import annotations

import torch

from ....inspection import Look
from ....inspection.cost import effect
from ....inspection.edits import SwitchOff, edits_tap
from ....kept import Kept
from ....storage import Checkpoint
from ....words.numbers import percent
from ...page import Page
from ...prompts import suggestions
from .place import moved, ranking

COPYING = {"stories": "Mia had a red kite. Then Tom has the ", "copy": "bdfh bdfh\ncage c"}
"""By language: what comes next stands in the prompt already, so a head has to fetch it."""
FALLS = 0.5
"""A head decides where less than this share of the guess's probability is left without it."""


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


_hints = Kept(entries=64, megabytes=1)


def hint(look: Look) -> str:
    """What this prediction loses without the head that it owes most; nothing where no head decides."""
    return _hints.get("hint", lambda: _hint(look), owner=look)


def _hint(look: Look) -> str:
    if moved(look) is None:
        return ""
    layer, head = ranking(look)[0]
    found = effect(look.model, torch.tensor([look.ids]), edits_tap([SwitchOff(layer, "head", head)], look.config))
    token, instead = int(found.before.argmax()), int(found.after.argmax())
    before, after = float(found.before[token]), float(found.after[token])
    if after > FALLS * before:
        return ""
    then = f"it has {percent(after)}"
    if instead != token:
        then += f", and “{look.token_label(instead)}” leads with {percent(float(found.after[instead]))}"
    return (
        f"Break it: “{look.token_label(token)}” comes next with {100 * before:.2f} %. Without head {head} of layer "
        f"{layer} {then}. See where that head looks, then switch it off under “Change it”."
    )
