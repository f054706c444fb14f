"""Train tiny model: choose a text and a size, press Train, watch it learn.

layout.py      the form, and settings.py what touching it does
running.py     Train, and what the panel's buttons do to a run
run_panel.py   a run on the page; verdict.py words its result, watch.py draws it
speaking.py    what the baselines say, and how good the samples are
runs_table.py  all runs side by side
linked.py      runs that links set up, and how they compare when repeated
takeaway.py    files to take away, and models to bring; hub.py: to and from the Hub
report.py      a run as one page of HTML
sweep.py       several values of a setting, tried with several seeds
"""

from __future__ import annotations

import gradio as gr

from ....service.run_job import RunJob
from ...page import Page
from ...theme import quiet
from ...under_way import add_bar
from . import layout, run_panel, sweep, takeaway, verdict
from .running import Running
from .runs_table import kept_words
from .settings import Settings

TITLE = "Train tiny model"


def build(page: Page) -> None:
    """Lay the tab out and wire it up."""
    with gr.Row(elem_id="train", equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="card", elem_id="train-controls"):
            controls = layout.controls(page.limits)
            add_bar(page, RunJob, verdict.bar, elem_id="train-bar", stop_id="stop-button")
            controls |= layout.advanced(page.limits)
            if not page.registry.data.lasting:
                gr.HTML(quiet(kept_words(page.limits, lasting=False)), padding=False, elem_id="not-kept")
        running = Running(page, Settings(page.limits, controls, page.board.pace, page.registry.get))
        with gr.Column(scale=11, min_width=320, elem_id="train-results"):
            start = run_panel.Selection().to_dict() | {"has_samples": True}  # as most have
            page.panels.add(
                "train", lambda asked: run_panel.show_run(page, running, asked), run_panel.TEMPLATE,
                start=start, follows=True, elem_id="train-panel",
            )  # fmt: skip
            sweep.build(page)
            takeaway.build(page, running.view_of)
    running.connect()
    page.share("train.running", running)
