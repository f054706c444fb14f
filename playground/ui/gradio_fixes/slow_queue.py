"""Gradio's queue looks for events a thousand times a second, 7 % of a processor; here fifty times.

After each event it sums up the last ten thousand in a table of pandas, 8 to 15 ms, for a monitor that is switched off;
here not. Whenever one begins it tells all who wait their new places, which for a crowd is a message for every pair of
them: here every other second. Where GPUs are lent it also takes one event at a time and tells the third visitor that it
is full; here not. The first two are attributes of the queue (gradio 6.31), which a release may rename; the others are
documented.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from ...service.limits import LANE, QUEUED_EVENTS

QUEUE_PAUSE = 0.02  # seconds
PLACES_EVERY = 2.0  # seconds


class SlowQueue(gr.Blocks):
    """Blocks whose queue is in no hurry while it is empty."""

    def queue(self, *arguments: Any, **named: Any) -> SlowQueue:
        """As in gradio."""
        named.setdefault("max_size", QUEUED_EVENTS)  # gradio's own number is 1 where GPUs are lent
        named.setdefault("status_update_rate", PLACES_EVERY)
        named.setdefault("default_concurrency_limit", LANE)  # gradio's is 1: one visitor would keep all others waiting
        super().queue(*arguments, **named)
        self._queue.sleep_when_free = self._queue.progress_update_sleep_when_free = QUEUE_PAUSE
        self._queue.compute_analytics_summary = lambda records: None
        self._queue.ANALYTICS_MAX_EVENTS = 1  # it keeps them for the same monitor
        return self
