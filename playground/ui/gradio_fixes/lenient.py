"""Pickers that take what another model's choices or range allowed: these may change while an event is under way.

Gradio holds every value against the choices and limits that a component has by now, and answers an honest click that
came a moment too late with an error. Here whoever reads the value holds it to what there is. A method set on one
component is lost when an update has Gradio build it anew for the session, so these are classes.

(Gradio 6.31. `event(..., preprocess=False)` would take all of an event's inputs as they were sent, the visitor's id and
uploads too; here it is the pickers alone.)
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from typing import Any

import gradio as gr


def _as_sent(self: gr.components.Component, payload: Any) -> Any:
    """A text or a number as it was sent, or a list of such where several can be chosen; anything else is None."""
    if getattr(self, "multiselect", False):
        return [one for one in payload if isinstance(one, (str, int, float))] if isinstance(payload, list) else []
    return payload if isinstance(payload, (str, int, float)) else None


def _or_first(self: gr.components.Component, payload: Any) -> Any:
    """One of the choices; what is none of them, which only a raw call can send, stands for the first."""
    known = [value for _, value in self.choices]
    return payload if payload in known else known[0]


def _lenient(kind: type, read: Callable = _as_sent, name: str = "Lenient") -> type:
    # Made without Gradio's own metaclass step, which writes a .pyi file beside every subclass of a component;
    # `is_template` is Gradio's word for "drawn as its parent is".
    name = f"{name}{kind.__name__}"
    body = {"is_template": True, "preprocess": read, "__module__": __name__, "__doc__": read.__doc__}
    body |= {"_warn_if_invalid_choice": lambda self, value: None}
    return ABCMeta.__new__(type(kind), name, (kind,), body)


LenientDropdown = _lenient(gr.Dropdown)
LenientSlider = _lenient(gr.Slider)
LenientNumber = _lenient(gr.Number)
SteadyRadio = _lenient(gr.Radio, _or_first, "Steady")
SteadyDropdown = _lenient(gr.Dropdown, _or_first, "Steady")
