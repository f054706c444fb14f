"""Gradio keeps a copy of every component's properties for each open page, for links that we do not offer.

That is a megabyte and 0.16 seconds of the server for each page that is opened (gradio 6.31), something of it for every
value that is sent, and a file for whoever asks for such a link. Here there is nothing to be kept.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gradio as gr
from gradio import state_holder

PLAIN = state_holder.SessionState
"""As gradio has it."""


class Session(PLAIN):
    """What gradio remembers of an open page: its states, and components whose properties have changed."""

    def __init__(self, blocks: gr.Blocks):
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks={}))

    def __setitem__(self, key: int, value: Any) -> None:
        if isinstance(self.blocks_config.blocks.get(key), gr.State):
            super().__setitem__(key, value)
        else:
            self.blocks_config.blocks[key] = value

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: Any) -> None:
        pass


def install() -> None:
    """Gradio's holder of sessions makes them by this name from now on."""
    state_holder.SessionState = Session
