"""Gradio begins each open page's memory with a copy of every component's properties, for links that we do not offer.

That is a megabyte and 0.16 seconds of the server for each page that is opened (gradio 6.31). Here it gathers those that
change, as it also would.
"""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr
from gradio import state_holder

PLAIN = state_holder.SessionState
"""As gradio has it."""


class Session(PLAIN):
    """What gradio remembers of an open page."""

    def __init__(self, blocks: gr.Blocks):
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks={}))


def install() -> None:
    """Gradio's holder of sessions makes them by this name from now on."""
    state_holder.SessionState = Session
