"""What the tab opens on: a prompt on which a head matters, and the sentence that says which."""

from __future__ import annotations

from ....figures.wire import percent
from ....inspection import Look
from ....inspection.decisive import Decisive, decisive
from ....service.kept import Kept
from ....storage import Checkpoint
from ...page import Page
from ...prompts import suggestions
from .place import Place, best, last

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
    return list(dict.fromkeys([first, *known]))[:4] if first else known


_found = Kept(entries=64)


def deciding(look: Look) -> Decisive | None:
    """The head that decides the next guess; None where none does.

    Looked for on the prompts that the tab opens on, once for all visitors: a pass with each head off in turn takes as
    long as many looks.
    """
    opens_on = copying(look.checkpoint)
    if opens_on is None or tuple(look.checkpoint.tokenizer.encode(opens_on)) != look.ids:
        return None
    found = _found.get(look.ids, lambda: decisive(look), owner=look.model)
    return found if found is not None and found.after <= FALLS * found.before else None


def opening(look: Look, place: Place) -> Place:
    """Where a view opens: the head that decides, else the most telling; the last token, and what it watches most."""
    found = deciding(look)
    return best(look, place) if found is None else last(look, place.at(layer=found.layer, head=found.head))


def hint(look: Look) -> str:
    """What the deciding head's removal does to the next guess; nothing where none decides."""
    found = deciding(look)
    if found is None:
        return ""
    after = f"{percent(found.after)} are left"
    if found.instead != found.token:
        after += f", and “{look.token_label(found.instead)}” leads with {percent(found.probability)}"
    return (
        f"Break it: “{look.token_label(found.token)}” comes next with {percent(found.before)}. Without head "
        f"{found.head} of layer {found.layer} {after}. See where that head looks, then switch it off under “Change it”."
    )
