"""Blocks: gradio's Blocks with a calm queue, free skipped outputs, and errors that end in a sentence (gradio 6.31).

Gradio's own queue looks for events a thousand times a second, 7 % of a processor; here fifty times. After each event it
sums up the last ten thousand in a table of pandas, 8 to 15 ms, for a monitor that is switched off; here not.
"""

from __future__ import annotations

import copy
from typing import Any

import gradio as gr
from gradio import state_holder

from ...service.limits import QUEUED_EVENTS
from .quiet_refusals import QuietRefusals
from .small_sessions import Session

state_holder.SessionState = Session  # by this name gradio makes them from now on
QUEUE_PAUSE = 0.02  # seconds


class Blocks(QuietRefusals):
    """The page, with some of gradio's habits mended. Its queue holds programs' calls alone."""

    def queue(self, *arguments: Any, **named: Any) -> Blocks:
        """As in gradio."""
        named.setdefault("max_size", QUEUED_EVENTS)  # gradio's own number is 1 where GPUs are lent
        super().queue(*arguments, **named)
        self._queue.sleep_when_free = self._queue.progress_update_sleep_when_free = QUEUE_PAUSE
        self._queue.compute_analytics_summary = lambda records: None
        return self

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: Any = None) -> list[Any]:
        """What goes to the page for a handler's outputs, in their order.

        Gradio makes a new component of every output that a dictionary leaves out: 0.2 ms and two kilobytes each, and
        opening a page skips 170. Here it sees only those that were given a value.
        """
        values = {} if predictions == gr.skip() else predictions
        outputs = block_fn.outputs
        if len(outputs) < 2 or not isinstance(values, dict) or not values.keys() <= set(outputs):
            return await super().postprocess_data(block_fn, predictions, state)
        given = copy.copy(block_fn)
        given.outputs = list(values)
        made = await super().postprocess_data(given, values, state) if values else []
        sent = dict(zip(values, made))
        return [sent.get(output, gr.skip()) for output in outputs]
