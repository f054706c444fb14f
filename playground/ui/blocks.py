"""Blocks: gradio's Blocks, but that what does nothing costs nothing: outputs left alone, an empty queue, a new session.

A visitor's run is trained in the same process, so whatever gradio does takes time from it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import gradio as gr
from gradio import state_holder
from gradio.routes import App

from ..service.limits import QUEUED_EVENTS

QUEUE_PAUSE = 0.02  # seconds


class Blocks(gr.Blocks):
    """The page, with some of gradio's habits mended."""

    def queue(self, *arguments: Any, **named: Any) -> Blocks:
        """Gradio's queue looks for events a thousand times a second, 7 % of a processor; here fifty times.

        Where GPUs are lent it also takes one event at a time and tells the third visitor that it is full; here not.
        """
        named.setdefault("max_size", QUEUED_EVENTS)  # gradio's own number is 1 where GPUs are lent
        with _no_server_yet():
            super().queue(*arguments, **named)
        self._queue.sleep_when_free = QUEUE_PAUSE
        return self

    def __exit__(self, *error: Any) -> None:
        """Gradio makes a server here, one when the queue is made, and the one that serves when it is launched.

        Its page tells every output of every handler so far of each change in progress, and looks for each of them in
        the whole tree of components: a tenth of a second of the browser's time per click. Handlers that show no
        progress need tell nobody.
        """
        for handler in self.fns.values():
            if handler.show_progress == "hidden" and handler.show_progress_on is None:
                handler.show_progress_on = []
        with _no_server_yet():
            super().__exit__(*error)

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: Any = None) -> list[Any]:
        """What goes to the page for a handler's outputs, in their order.

        Gradio makes a new component, for the session to keep, of every output that a handler skips. That is three
        milliseconds of the server and some kilobytes of the session's memory per output, while a look at a run changes
        two of its two dozen outputs. Here gradio sees only the outputs that were given something.
        """
        given = _given(block_fn.outputs, predictions)
        if given is None or block_fn.batch or block_fn.is_validator_function:
            return await super().postprocess_data(block_fn, predictions, state)
        data: list[Any] = [gr.skip() for _ in block_fn.outputs]
        if given:
            only = copy.copy(block_fn)
            only.outputs = [block_fn.outputs[index] for index in given]
            values = list(given.values())
            made = await super().postprocess_data(only, values[0] if len(values) == 1 else values, state)
            for index, value in zip(given, made):
                data[index] = value
        return data


class Session(state_holder.SessionState):
    """What gradio remembers of an open page.

    It begins with a copy of every component's properties, for links that this page does not offer: a megabyte and 0.16
    seconds of the server for each page that is opened. Here it gathers those that change, as it also would.
    """

    def __init__(self, blocks: gr.Blocks):
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks={}))


state_holder.SessionState = Session  # gradio's holder of sessions makes them by this name


@contextmanager
def _no_server_yet() -> Iterator[None]:
    make = App.create_app
    App.create_app = staticmethod(lambda *_, **__: None)
    try:
        yield
    finally:
        App.create_app = make


def _given(outputs: Sequence[gr.blocks.Block], predictions: Any) -> dict[int, Any] | None:
    """Index of an output → what it was given, for those given anything; None where gradio had better decide."""
    if len(outputs) < 2:
        return None
    if isinstance(predictions, dict):
        if predictions == gr.skip():
            return {}
        index_of = {output._id: index for index, output in enumerate(outputs)}
        if not all(isinstance(key, gr.blocks.Block) and key._id in index_of for key in predictions):
            return None
        pairs = [(index_of[component._id], value) for component, value in predictions.items()]
    elif isinstance(predictions, (list, tuple)) and len(predictions) == len(outputs):
        pairs = list(enumerate(predictions))
    else:
        return None
    return {index: value for index, value in pairs if not (isinstance(value, dict) and value == gr.skip())}
