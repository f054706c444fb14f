"""Places: a limit on simultaneous work. When all are taken, the network and the visitor with the fewest come next.

`Board` does the same for jobs that take minutes. This is for work that takes seconds: a text, a slow picture.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Places:
    """`count` places, for one event loop."""

    def __init__(self, count: int):
        self._free = count
        self._line: list[tuple[asyncio.Future[None], str, str]] = []  # those who wait, each with network and visitor
        self._at_work: Counter[str] = Counter()  # places held, by network and by visitor

    @property
    def taken(self) -> bool:
        """Whether the next call has to wait."""
        return not self._free

    @asynccontextmanager
    async def of(self, network: str, visitor: str) -> AsyncIterator[None]:
        """Wait for a place for this visitor in this network, and hold it."""
        if self._free:
            self._free -= 1
        else:
            mine = asyncio.get_running_loop().create_future(), network, visitor
            self._line.append(mine)
            try:
                await mine[0]
            except asyncio.CancelledError:
                if mine in self._line:
                    self._line.remove(mine)
                else:  # it got a place at the same moment
                    self._next()
                raise
        self._at_work.update((network, visitor))
        try:
            yield
        finally:
            self._at_work -= Counter((network, visitor))  # also drops counts of zero
            self._next()

    def _next(self) -> None:
        """Pass on a free place: to those with the fewest places, then to those who came first."""
        if not self._line:
            self._free += 1
            return
        chosen = min(self._line, key=lambda waits: (self._at_work[waits[1]], self._at_work[waits[2]]))
        self._line.remove(chosen)
        chosen[0].set_result(None)
