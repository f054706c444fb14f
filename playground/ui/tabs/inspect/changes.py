"""Changes in force as the page keeps them: they belong to the model that they were made on, and wait there for it."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from ....inspection.edits import Edit, from_dict, to_dict
from ....inspection.example import EXAMPLES
from ....service.limits import EDITS
from ....words.edits import edit_words

MOST = 8
"""Models whose changes are remembered."""
LINKED = "linked"
"""Whose changes are that came with a link to a model which has to be trained first."""


def owner(model_id: str | None, subject: Any) -> str:
    """Whose the changes are: the worked example's, or the model's."""
    return subject if subject in EXAMPLES else str(model_id)


def exchanged(kept: Any, chosen: str, codes: Any, *, awaited: bool = False) -> tuple[str, Any]:
    """What is kept now, and the changes in force for the one that is chosen now; those of the one before wait.

    `kept` is what this gave before, or "" on a page that has just opened: what is in force then came with a link to the
    model that is chosen; if that one is `awaited`, it is the first of the visitor's own.
    """
    before, waiting = _read(kept)
    if before == chosen:
        return kept, codes
    whose = before or (LINKED if awaited and chosen not in EXAMPLES else chosen)
    waiting = {name: listed for name, listed in waiting.items() if name != whose} | ({whose: codes} if codes else {})
    if LINKED in waiting and chosen not in EXAMPLES and not chosen.startswith("shipped-"):
        waiting[chosen] = waiting.pop(LINKED)
    codes = waiting.pop(chosen, [])
    return json.dumps([chosen, dict(list(waiting.items())[-MOST:])]), codes


def waiting_at(kept: Any) -> list[str]:
    """The models whose changes wait for them."""
    return list(_read(kept)[1])


def _read(kept: Any) -> tuple[str, dict[str, list]]:
    """Anybody may have written it."""
    try:
        before, waiting = json.loads(kept)
        return str(before), {str(name): listed for name, listed in waiting.items() if isinstance(listed, list)}
    except (TypeError, ValueError, AttributeError, RecursionError):
        return "", {}


def in_force(listed: list[Edit]) -> dict:
    """The list as its drop-down shows it."""
    # gr.update, since gr.Dropdown warns of every value that the list did not have when the page was built
    return gr.update(choices=[(edit_words(edit), coded(edit)) for edit in listed], value=[*map(coded, listed)])


def coded(edit: Edit) -> str:
    """An edit as the page keeps it."""
    return json.dumps(to_dict(edit), sort_keys=True)


def parsed(codes: Any) -> list[Edit]:
    """Edits from what a page sent back, which anybody may have written. Raises ValueError."""
    if not isinstance(codes, list) or len(codes) > EDITS:
        raise ValueError("This list of changes cannot be used: press “Undo all”")
    try:
        return [from_dict(json.loads(code)) for code in codes]
    except (TypeError, ValueError, RecursionError):
        raise ValueError("This list of changes cannot be used: press “Undo all”") from None
