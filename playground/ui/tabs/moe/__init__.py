"""Dense vs MoE: train both fairly, side by side; compare the results, see where the mixture sends its tokens, break it.

training.py    the form, Train both, and what the panel's buttons do
selection.py   which pair is shown, and what a view knows about it
pair_panel.py  the panel; verdict.py words a pair's result
routing.py, loads.py, experts.py, breaking.py, table.py, both.py   its folds; texts.py: the text they are judged on
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....service.views import PairView
from ...page import Page
from . import pair_panel
from .selection import Selection, at
from .training import Comparing

TITLE = "Dense vs MoE"


def build(page: Page) -> None:
    """Lay the tab out and wire it up."""
    with gr.Row(elem_id="moe", equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="card", elem_id="moe-controls"):
            comparing = Comparing(page)
        with gr.Column(scale=11, min_width=320, elem_id="moe-results"):
            panel = page.panels.add(
                "moe", lambda asked: pair_panel.show_pair(page, asked), pair_panel.TEMPLATE,
                start=Selection().to_dict(), of_model=pair_panel.OF_MODEL,
                address=pair_panel.ADDRESS, follows=True, elem_id="moe-panel",
            )  # fmt: skip
    comparing.connect()

    def shown(visitor: str | None, sent: Any, model: str | None) -> PairView | None:
        """The pair that a page shows, for lessons."""
        chosen = Selection.read(sent if isinstance(sent, dict) else {})
        return at(page, visitor, chosen.moved(model=model or "")).seen()

    page.share("moe", panel)
    page.share("moe.comparing", comparing)
    page.share("moe.pair", shown)
