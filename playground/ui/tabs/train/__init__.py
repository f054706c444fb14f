"""Train tiny model: choose a text and a size, press Train, watch it learn.

layout.py     where everything stands
settings.py   what touching the form does
running.py    what happens to a run
watch.py      what a run looks like
linked.py     runs that links set up, and how they compare when repeated
speaking.py   what the ladder says, and what the samples are worth
takeaway.py   files to take away, and models to bring
report.py     a run as one page of HTML
hub.py        models to and from the Hub
"""

from __future__ import annotations

import gradio as gr

from ...page import Page
from ...theme import quiet
from . import hub, layout, takeaway
from .running import Running, recorded
from .runs_table import kept_words
from .settings import Settings

TITLE = "Train tiny model"


def build(page: Page) -> None:
    """Lay the tab out and wire it up."""
    opening, lasting = recorded(page, page.registry.default), page.registry.data.lasting
    with gr.Row(elem_id="train", equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="card", elem_id="train-controls"):
            controls = layout.controls(page.limits, opening)
            if not lasting:
                gr.HTML(quiet(kept_words(page.limits, lasting=False)), padding=False, elem_id="not-kept")
        with gr.Column(scale=11, min_width=320, elem_id="train-results"):
            results = layout.results(opening, page.limits, lasting=lasting)
            accordion = gr.Accordion("Take it with you", open=False, elem_classes="card", elem_id="take")
    settings = Settings(page.limits, controls, page.board.pace)
    settings.connect()
    running = Running(page, settings, results)
    running.connect()
    page.share("train.running", running)
    with accordion:
        takeaway.build(page, running.view_of)
        hub.build(page)
