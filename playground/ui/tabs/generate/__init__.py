"""The Generate tab: talk to a model, open every choice, see what the KV cache saves and what precision costs."""

from __future__ import annotations

import gradio as gr

from ...page import Page
from . import cache_panel, game, precision, temperatures, writing

TITLE = "Generate"


def build(page: Page) -> None:
    """Lay out the tab: writing above, a game and three experiments below it."""
    desk = writing.build(page)
    with gr.Accordion(game.TITLE, open=False, elem_id="game") as fold:
        game.build(page, fold)
    with gr.Accordion(
        "What temperature does: the same prompt at 0.1, 0.5, 1 and 2", open=False, elem_id="fold-temperatures"
    ):
        temperatures.build(page, desk)
    with gr.Accordion("What the KV cache saves: the same text with and without it", open=False, elem_id="fold-cache"):
        cache_panel.build(page, desk)
    with gr.Accordion(
        "What precision costs: the same model in fp32, bf16 and int8", open=False, elem_id="fold-precision"
    ):
        precision.build(page)
