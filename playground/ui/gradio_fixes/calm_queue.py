"""A calm queue: it looks for work rarely, and each address has a bounded part of it (gradio 6.31).

Gradio's own looks for events a thousand times a second, 7 % of a processor; here fifty times. After each event it sums
up the last ten thousand in a table of pandas, 8 to 15 ms, for a monitor that is switched off; here not. Whenever one
begins it tells all who wait their new places, which for a crowd is a message for every pair of them: here every other
second. Where GPUs are lent it also takes one event at a time and tells the third visitor that it is full; here not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr
from starlette.requests import Request

from ...service.limits import LANE, QUEUED_EVENTS

QUEUE_PAUSE = 0.02  # seconds
PLACES_EVERY = 2.0  # seconds
FULL = "Many calls from your network are waiting for an answer. Try again in a moment."


class CalmQueue(gr.Blocks):
    """Blocks whose queue polls less often while it is empty, and that one address cannot fill."""

    origin_of: Callable[[Request], str] = staticmethod(lambda request: "")
    """The address that an event comes from."""
    calls_per_address = 500
    """Limit on the events from one address that wait or run."""

    def queue(self, *arguments: Any, **named: Any) -> CalmQueue:
        """As in gradio."""
        named.setdefault("max_size", QUEUED_EVENTS)  # gradio's own number is 1 where GPUs are lent
        named.setdefault("status_update_rate", PLACES_EVERY)
        named.setdefault("default_concurrency_limit", LANE)  # gradio's is 1: one visitor would keep all others waiting
        super().queue(*arguments, **named)
        queue, push = self._queue, self._queue.push
        queue.sleep_when_free = queue.progress_update_sleep_when_free = QUEUE_PAUSE
        queue.compute_analytics_summary = lambda records: None

        async def bounded_push(body: Any, request: Any, username: str | None) -> tuple[bool, Any, str]:
            events = [event for lane in queue.event_queue_per_concurrency_id.values() for event in lane.queue]
            events += [event for at_work in queue.active_jobs if at_work for event in at_work]
            origin = self.origin_of(request)
            if sum(self.origin_of(event.request) == origin for event in events) >= self.calls_per_address:
                return False, FULL, "queue_full"
            return await push(body=body, request=request, username=username)

        queue.push = bounded_push
        return self
