"""Dense vs MoE: train both fairly, side by side; then see where the mixture sends its tokens, and break it.

frame.py       the two models looked at, and what the parts share
"""

from __future__ import annotations

import importlib
import importlib.util

import gradio as gr

from ...page import Page
from .frame import build_frame

TITLE = "Dense vs MoE"
PARTS = ("routing", "experts", "breaking")  # modules of this package with TITLE and build(frame), in this order


def build(page: Page) -> None:
    """Lay the tab out and wire it up."""
    with gr.Row(elem_id="moe-pair", elem_classes="card", equal_height=False):
        frame = build_frame(page)
    for name in PARTS:
        if importlib.util.find_spec(f"{__package__}.{name}"):
            part = importlib.import_module(f"{__package__}.{name}")
            with gr.Accordion(part.TITLE, open=name == "routing", elem_classes="card", elem_id=f"moe-{name}"):
                part.build(frame)
