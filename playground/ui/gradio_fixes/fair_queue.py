"""A fair queue: each address has a bounded part of gradio's queue, and addresses take turns (gradio 6.31).

Gradio's own takes whatever comes in its order, 500 events in all. One address that asks 500 times for a look at a head
keeps everybody waiting, and then has them turned away. Texts wait in memory, so their sizes are bounded, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import gradio as gr
from starlette.requests import Request

from ...service.limits import BODIES, BODIES_PER_ADDRESS, SMALL_BODY

FULL = "Many calls from your network are waiting for an answer. Try again in a moment."


class FairQueue(gr.Blocks):
    """Blocks whose queue is shared out by address."""

    origin_of: Callable[[Request], str] = staticmethod(lambda request: "")
    """The address that an event comes from."""
    calls_per_address = 500
    """Events from one address that wait or are at work."""

    def queue(self, *arguments: Any, **named: Any) -> FairQueue:
        """As in gradio."""
        super().queue(*arguments, **named)
        push = self._queue.push

        async def fair_push(body: Any, request: Any, username: str | None) -> tuple[bool, Any, str]:
            lanes = self._queue.event_queue_per_concurrency_id.values()
            waiting = [event for lane in lanes for event in lane.queue]
            at_work = [event for events in self._queue.active_jobs if events for event in events]
            sizes: dict[str, list[int]] = {}  # of what each address has sent
            for event in waiting + at_work:
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

        self._queue.push = fair_push
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
