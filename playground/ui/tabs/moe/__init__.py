"""Dense vs MoE: train both fairly, side by side; then see where the mixture sends its tokens, and break it.

compare.py       the form, the buttons, a comparison's life
pair_picture.py  what a pair looks like
linked.py        links to a comparison
table.py         what the two are, cost and reach
two_models.py    the two models looked at, and what the parts below share
sidebyside.py    predictions and texts of both
"""

from __future__ import annotations

import importlib

import gradio as gr

from ...page import Page
from ...theme import heading
from . import sidebyside
from .compare import Compare
from .table import pair_table
from .two_models import pick_two

TITLE = "Dense vs MoE"
PARTS = ("routing", "experts", "breaking")  # modules of this package with TITLE and build(two), in this order


def build(page: Page) -> None:
    """Lay the tab out and wire it up."""
    compare = Compare(page)
    with gr.Column(elem_classes="card"):
        gr.HTML(
            heading("The two models below", "A comparison puts its own two here; you may choose any other pair."),
            padding=False,
        )
        with gr.Row(elem_id="moe-pair", equal_height=False):
            two = pick_two(page, compare.r["letters"])
        table = gr.HTML(
            # speeds take seconds to measure: they come when the tab is opened, as does the verdict
            pair_table(compare.view_of(None, two.dense.value, two.moe.value, judged=False)),
            padding=False,
            elem_id="moe-table",
        )
    compare.connect(two, table)
    page.share("moe.pair", (compare.view_of, two.looked_at))
    with two.part(sidebyside.TITLE, "sidebyside", open=False):
        sidebyside.build(two)
    for name in PARTS:
        part = importlib.import_module(f"{__package__}.{name}")
        with two.part(part.TITLE, name, open=name == "routing"):
            part.build(two)
