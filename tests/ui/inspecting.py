"""An Inspect tab without a browser: its frame, the values its handlers get, and what their updates weigh."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import gradio as gr

from playground.service.board import Board
from playground.service.limits import LOCAL, Limits
from playground.service.models import Registry
from playground.storage import Checkpoint
from playground.ui.page import Page, model_dropdown
from playground.ui.tabs import inspect
from playground.ui.tabs.inspect.frame import MODEL, Frame

VISITOR = "a-visitor-of-these-tests"


class Inspecting:
    """The tab with one model of the visitor's own chosen. `at(prompt, …)` gives a handler's values."""

    def __init__(self, checkpoint: Checkpoint, limits: Limits = LOCAL):
        registry = Registry(limits)
        self.model_id = registry.add(VISITOR, checkpoint)
        with gr.Blocks() as self.blocks:
            visitor, model = gr.BrowserState(""), model_dropdown(registry, label="Model")
            tabs = gr.Tabs()
            self.page = Page(limits, registry, Board(registry, limits), visitor, model, tabs, ("inspect",))
            with tabs, gr.Tab("Inspect") as self.page.tab:
                self.frame: Frame = inspect.build(self.page)
            self.page.finish()
        self.defaults = {
            component: getattr(component, "value", None)
            for function in self.blocks.fns.values()
            for component in function.inputs
        }

    def at(self, prompt: str, view: str = "walk", place=(0, 0, 0, 0), subject: str = MODEL, **more: Any) -> dict:
        """What a handler of the frame receives; `more` sets components of the views by their elem_id, - as _."""
        frame = self.frame
        values = {
            **self.defaults,
            self.page.visitor: VISITOR,
            self.page.model: self.model_id,
            frame.prompt: prompt,
            frame.subject: subject,
            frame.view: view,
            **dict(zip(frame.pickers, place)),
        }
        for name, value in more.items():
            values[self.component(name)] = value
        return values

    def handler(self, component: Any, event: str) -> Any:
        """What answers this event: an async function of values, event and request."""
        number = component if isinstance(component, int) else component._id
        return next(f.fn for f in self.blocks.fns.values() if (number, event) in f.targets and f.fn)

    def click(
        self, name: str, event: str, values: dict, said: Any = None, session: str | None = None, **query: str
    ) -> dict:
        """What the page, opened at an address with this query, is sent when this happens to the component."""
        handler = self.handler(self.component(name), event)
        request = gr.Request(session_hash=session, query_params=query)
        return asyncio.run(handler(dict(values), gr.EventData(None, said), request))

    def component(self, name: str) -> Any:
        """A component by its elem_id, written with _ for -."""
        return next(b for b in self.blocks.blocks.values() if b.elem_id == name.replace("_", "-"))


def weight(updates: dict) -> int:
    """Bytes that these updates take as JSON."""
    plain = (u.constructor_args if isinstance(u, gr.blocks.Block) else u for u in updates.values())
    return sum(len(json.dumps(u)) for u in plain)
