"""Train tiny model: choose a text and a size, press Train, watch it learn.

form.py       every setting with its one-line why, as a table, and what a form's values mean
layout.py     where everything stands
settings.py   what touching the form does
running.py    what happens to a run
watch.py      what a run looks like
pace.py       how long a run will take here
hub.py        models to and from the Hub
"""

from __future__ import annotations

import gradio as gr

from ...page import Page
from . import hub, layout
from .pace import Pace
from .running import Running, recorded
from .settings import Settings

TITLE = "Train tiny model"


def build(page: Page) -> None:
    """Lay the tab out and wire it up."""
    opening, pace = recorded(page, page.registry.default), Pace()
    with gr.Row(elem_id="train", equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="card", elem_id="train-controls"):
            controls = layout.controls(page.limits, opening)
        with gr.Column(scale=11, min_width=320, elem_id="train-results"):
            results = layout.results(opening)
            with gr.Accordion("The Hub", open=False, elem_classes="card", elem_id="hub-accordion"):
                hub.build(page)
    settings = Settings(page.limits, controls, pace)
    settings.connect()
    Running(page, settings, results, pace).connect()
