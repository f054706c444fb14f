"""A drop-down that takes choices of another model: its list may have changed while the visitor's event was under way.

A method set on one component is lost when an update has Gradio build it anew for the session, so this is a class.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

import gradio as gr


def _as_sent(self: gr.Dropdown, payload: Any) -> Any:
    """Any text or number, since who reads it holds it to what there is; anything else is None."""
    return payload if isinstance(payload, (str, int, float)) else None


# Made without Gradio's own metaclass step, which writes a .pyi file beside every subclass of a component;
# `is_template` is Gradio's word for "drawn as its parent is".
LenientDropdown = ABCMeta.__new__(
    type(gr.Dropdown), "LenientDropdown", (gr.Dropdown,),
    {"is_template": True, "preprocess": _as_sent, "__module__": __name__, "__doc__": _as_sent.__doc__},
)  # fmt: skip
