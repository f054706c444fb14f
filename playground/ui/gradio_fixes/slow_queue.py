"""Gradio's queue looks for events a thousand times a second, 7 % of a processor; here fifty times.

Where GPUs are lent it also takes one event at a time and tells the third visitor that it is full; here not. The first
is an attribute of the queue (gradio 6.31), which a release may rename; the second is its documented `max_size`.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from ...service.limits import QUEUED_EVENTS

QUEUE_PAUSE = 0.02  # seconds


class SlowQueue(gr.Blocks):
    """Blocks whose queue is in no hurry while it is empty."""

    def queue(self, *arguments: Any, **named: Any) -> SlowQueue:
        """As in gradio."""
        named.setdefault("max_size", QUEUED_EVENTS)  # gradio's own number is 1 where GPUs are lent
        super().queue(*arguments, **named)
        self._queue.sleep_when_free = QUEUE_PAUSE
        return self
