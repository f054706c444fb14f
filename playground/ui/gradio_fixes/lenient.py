"""A drop-down that takes what another list allowed: the list of models may change while an event is under way.

Gradio holds every value against the choices that a component has by now, and answers an honest click that came a moment
too late with an error (6.31). Here whoever reads the value holds it to what there is. A method set on one component is
lost when an update has Gradio build it anew for the session, so this is a class. (With `allow_custom_value` the browser
would send a model's name in place of its id.)
"""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio import component_meta

component_meta.create_or_modify_pyi = lambda *given: None  # it would write a .pyi file beside this one


class LenientDropdown(gr.Dropdown):
    """A dropdown that accepts values missing from its list."""

    is_template = True  # gradio's word for "drawn as its parent is"

    def preprocess(self, payload: Any) -> Any:
        """A text or a number as it was sent; anything else is None."""
        return payload if isinstance(payload, (str, int, float)) else None

    def _warn_if_invalid_choice(self, value: Any) -> None:
        pass
