"""The Inspect tab: one prompt, every number that a model makes of it, explained, proved, changed.

frame.py, place.py, looks.py
              prompt and place, which all views share, and what models made of the latest prompts
walk.py       step by step from tokens to probabilities, with pictures.py, words.py, thumbnails.py
heads.py      one head enlarged, two compared
receipt.py    one cell of one head, term by term; the head to take home
roles.py      what each head does; tested.py tries it on many texts, once for all
minds.py, edit.py, learn.py, replay.py, sizes.py
              what each layer thinks, what a change costs, how weights learn, through training, what parts weigh and
              compute
drawn.py, changes.py
              which part of a long prompt is drawn; the changes in force, and whose they are
"""

from __future__ import annotations

import importlib

import gradio as gr

from ...page import Page
from . import frame as frames

TITLE = "Inspect QKV"
VIEWS = ("walk", "heads", "roles", "minds", "edit", "learn", "replay", "sizes")
"""The views in their order, each a module here with TITLE and build(frame)."""


def build(page: Page) -> frames.Frame:
    """Lay out the frame, then every view, each in a tab of its own."""
    frame = frames.build(page)
    modules = {name: importlib.import_module(f"{__package__}.{name}") for name in VIEWS}
    tabs = {}
    with gr.Tabs(elem_id="inspect-views") as views:
        for name, module in modules.items():
            with gr.Tab(module.TITLE, id=name, elem_id=f"inspect-{name}") as tabs[name]:
                frame.building = name
                module.build(frame)
    page.share("inspect.views", views)
    frame.connect(tabs)
    return frame
