"""Gradio keeps a copy of every component's properties for each open page, for links that we do not offer.

That is 0.4 MB and 12 ms of the server for each page that is opened (gradio 6.31), and a file for whoever asks for such
a link. Here there is nothing to be kept.
"""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr
from gradio import state_holder

PLAIN = state_holder.SessionState
"""As gradio has it."""


class Session(PLAIN):
    """What gradio remembers of an open page: its states, and components whose properties have changed."""

    def __init__(self, blocks: gr.Blocks):
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks={}))

    components = ()
    """Of which gradio would write a file for whoever asks."""

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: object) -> None:
        pass
