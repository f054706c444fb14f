"""Dense vs MoE: train both fairly, side by side; then see where the mixture sends its tokens, and break it.

compare.py     the form, the buttons, a comparison's life
watch.py       what a pair looks like
table.py       what the two are, cost and reach
frame.py       the two models looked at, and what the parts below share
sidebyside.py  predictions and texts of both
"""

from __future__ import annotations

import importlib

import gradio as gr

from ...page import Page
from ...theme import heading
from . import sidebyside
from .compare import Compare
from .frame import build_frame
from .table import pair_table

TITLE = "Dense vs MoE"
PARTS = ("routing", "experts", "breaking")  # modules of this package with TITLE and build(frame), in this order


def build(page: Page) -> None:
    """Lay the tab out and wire it up."""
    compare = Compare(page)
    with gr.Column(elem_classes="card"):
        gr.HTML(
            heading("The two models below", "A comparison puts its own two here; you may choose any other pair."),
            padding=False,
        )
        with gr.Row(elem_id="moe-pair", equal_height=False):
            frame = build_frame(page)
        table = gr.HTML(
            # speeds take seconds to measure: they come when the tab is opened, as does the verdict
            pair_table(compare.view_of(None, frame.dense.value, frame.moe.value, judged=False)),
            padding=False,
            elem_id="moe-table",
        )
    compare.connect(frame, table)
    page.share("moe.pair", (compare.view_of, frame.looked_at))
    with frame.part(sidebyside.TITLE, "sidebyside", open=False):
        sidebyside.build(frame)
    for name in PARTS:
        part = importlib.import_module(f"{__package__}.{name}")
        with frame.part(part.TITLE, name, open=name == "routing"):
            part.build(frame)
