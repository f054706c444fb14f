"""A drop-down that takes what another list allowed: the list of models may change while an event is under way.

Gradio holds every value against the choices that a component has by now, and answers an honest click that came a moment
too late with an error (6.31). Here whoever reads the value holds it to what there is. A method set on one component is
lost when an update has Gradio build it anew for the session, so this is a class.

(`event(..., preprocess=False)` would take all of an event's inputs as they were sent, the visitor's id too.)
"""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

import gradio as gr


def _as_sent(self: gr.Dropdown, payload: Any) -> Any:
    """A text or a number as it was sent; anything else is None."""
    return payload if isinstance(payload, (str, int, float)) else None


# Made without Gradio's own metaclass step, which writes a .pyi file beside every subclass of a component;
# `is_template` is Gradio's word for "drawn as its parent is".
LenientDropdown: type[gr.Dropdown] = ABCMeta.__new__(
    type(gr.Dropdown),
    "LenientDropdown",
    (gr.Dropdown,),
    {
        "is_template": True,
        "preprocess": _as_sent,
        "_warn_if_invalid_choice": lambda self, value: None,
        "__module__": __name__,
        "__doc__": _as_sent.__doc__,
    },
)
