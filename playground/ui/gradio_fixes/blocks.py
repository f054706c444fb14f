"""Blocks: gradio's Blocks, whose queue looks for work rarely, and whose errors end in a sentence (gradio 6.31).

Gradio's own queue looks for events a thousand times a second, 7 % of a processor; here fifty times. After each event it
sums up the last ten thousand in a table of pandas, 8 to 15 ms, for a monitor that is switched off; here not.
"""

from __future__ import annotations

from typing import Any

from ...service.limits import QUEUED_EVENTS
from .quiet_refusals import QuietRefusals

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
