"""Gradio's queue takes whatever comes, in its order: one address can fill it (gradio 6.31).

500 events have room in it. An address that asks for a look at a head 500 times keeps everybody waiting, and then has
them turned away. Here an address has a bounded part of the queue, and where calls of one handler wait, addresses take
turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import gradio as gr
from starlette.requests import Request

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
            mine = self.origin_of(request)
            if sum(self.origin_of(event.request) == mine for event in waiting + at_work) >= self.calls_per_address:
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
