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
from collections.abc import Callable, Iterable
from typing import Any

import gradio as gr
from starlette.requests import Request

from ...service.limits import BODIES, BODIES_PER_ADDRESS, LANE, QUEUED_EVENTS, SMALL_BODY

QUEUE_PAUSE = 0.02  # seconds
PLACES_EVERY = 2.0  # seconds
FULL = "Many calls from your network are waiting for an answer. Try again in a moment."


class CalmQueue(gr.Blocks):
    """Blocks whose queue is in no hurry while it is empty, and shared out by address."""

    origin_of: Callable[[Request], str] = staticmethod(lambda request: "")
    """The address that an event comes from."""
    calls_per_address = 500
    """Events from one address that wait or are at work."""

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
            sizes: dict[str, list[int]] = {}  # of what each address has sent
            for event in events:
                sizes.setdefault(self.origin_of(event.request), []).append(_size(event.data))
            mine, size = sizes.get(self.origin_of(request), []), _size(body)
            heavy = size > SMALL_BODY and (
                sum(mine) + size > BODIES_PER_ADDRESS or sum(map(sum, sizes.values())) + size > BODIES
            )
            if heavy or len(mine) >= self.calls_per_address:
                return False, FULL, "queue_full"
            answer = await push(body=body, request=request, username=username)
            for lane in lanes:
                lane.queue[:] = self._in_turns(lane.queue)
            return answer

        queue.push = fair_push
        return self

    def _in_turns(self, events: Iterable[Any]) -> list[Any]:
        """Every address's first event before anybody's second, in the order in which they came."""
        seen: Counter[str] = Counter()
        ranked = []
        for event in events:
            origin = self.origin_of(event.request)
            ranked.append((seen[origin], event))
            seen[origin] += 1
        return [event for _, event in sorted(ranked, key=lambda each: each[0])]


def _size(body: Any) -> int:
    """Characters of all texts of a call."""
    return sum(len(value) for value in body.data or () if isinstance(value, str))
