"""Edits of the forward pass: what each does, in a few words."""

from __future__ import annotations

from ..inspection.edits import Edit, EditCell, RemoveMask, SwapPattern, SwitchOff
from .heads import head_name

SEEN = "“Next” shows the edited model; most pictures show the unedited one."
"""Where edits in force are seen."""


def edit_words(edit: Edit) -> str:
    """What the edit does, briefly. Those of experts are not named anywhere."""
    match edit:
        case SwitchOff(layer, part, head):
            what = {"head": head_name(layer, head), "layer": f"all of layer {layer}"}.get(part)
            return f"layer {layer}'s {part} switched off" if what is None else f"{what} switched off"
        case EditCell():
            head, cell = head_name(edit.layer, edit.head), f"from token {edit.query} to token {edit.key}"
            return f"{head}, weight = {edit.value:g} {cell}"
        case SwapPattern(layer, head, pattern):
            where = "to all visible tokens equally" if pattern == "uniform" else "only to the token before"
            return f"{head_name(layer, head)} attends {where}"
        case RemoveMask(layer):
            return f"causal mask removed{'' if layer is None else f' in layer {layer}'}"
    raise TypeError(f"unknown edit: {type(edit).__name__}")
