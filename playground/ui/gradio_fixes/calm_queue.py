"""A calm and fair queue: it looks for work rarely, and each address has a bounded part of it (gradio 6.31).

Gradio's own looks for events a thousand times a second, 7 % of a processor; here fifty times. After each event it sums
up the last ten thousand in a table of pandas, 8 to 15 ms, for a monitor that is switched off; here not. Whenever one
begins it tells all who wait their new places, which for a crowd is a message for every pair of them: here every other
second. Where GPUs are lent it also takes one event at a time and tells the third visitor that it is full; here not.

It takes whatever comes in its order, 500 events in all: one address that asks 500 times for a look at a head keeps
everybody waiting, and then has them turned away. Here addresses take turns, and texts that wait in memory are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import gradio as gr
from starlette.requests import Request

from ...service.limits import BODIES, BODIES_PER_ADDRESS, LANE, QUEUED_EVENTS, SMALL_BODY

QUEUE_PAUSE = 0.02  # seconds
PLACES_EVERY = 2.0  # seconds
FULL = "Many calls from your network are waiting for an answer. Try again in a moment."


class CalmQueue(gr.Blocks):
    """Blocks whose queue polls less often while it is empty, and lets addresses take turns."""

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

        async def fair_push(body: Any, request: Any, username: str | None) -> tuple[bool, Any, str]:
            lanes = queue.event_queue_per_concurrency_id.values()
            events = [event for lane in lanes for event in lane.queue]
            events += [event for at_work in queue.active_jobs if at_work for event in at_work]
            sent = [(self.origin_of(event.request), _size(event.data)) for event in events]
            whole, size, origin = sum(each for _, each in sent), _size(body), self.origin_of(request)
            mine = [each for whose, each in sent if whose == origin]
            heavy = size > SMALL_BODY and (sum(mine) + size > BODIES_PER_ADDRESS or whole + size > BODIES)
            if heavy or len(mine) >= self.calls_per_address:
                return False, FULL, "queue_full"
            answer = await push(body=body, request=request, username=username)
            for lane in lanes:
                self._take_turns(lane.queue)
            return answer

        queue.push = fair_push
        return self

    def _take_turns(self, events: list[Any]) -> None:
        """Sort every address's first event before anybody's second; otherwise they keep their order."""
        seen: Counter[str] = Counter()

        def turn(event: Any) -> int:
            seen[self.origin_of(event.request)] += 1
            return seen[self.origin_of(event.request)]

        events.sort(key=turn)


def _size(body: Any) -> int:
    """Characters of all texts of a call."""
    return sum(len(value) for value in body.data or () if isinstance(value, str))
