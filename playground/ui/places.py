"""Places: a limit on simultaneous work. When all are taken, networks take turns, and visitors within each network.

`Board` does the same for jobs that take minutes. This is for work that takes seconds: a text, a slow picture.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class _Waits:
    """A call that waits for a place."""

    network: str
    visitor: str
    came: int
    called: asyncio.Future[None]


class Places:
    """`count` places, for one event loop."""

    def __init__(self, count: int):
        self._free = count
        self._line: list[_Waits] = []
        self._at_work: Counter[str] = Counter()  # places held, by network and by visitor
        self._served: dict[str, int] = {}  # likewise, while anybody waits: when they last got a place
        self._clock = itertools.count(1)

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
            mine = _Waits(network, visitor, next(self._clock), asyncio.get_running_loop().create_future())
            self._line.append(mine)
            try:
                await mine.called
            except asyncio.CancelledError:
                if mine in self._line:
                    self._line.remove(mine)
                else:  # it got a place at the same moment
                    self._next()
                raise
        self._count(network, visitor, 1)
        try:
            yield
        finally:
            self._count(network, visitor, -1)
            self._next()

    def _next(self) -> None:
        """Pass on a free place: to those with the fewest places, then to those served longest ago."""
        if not self._line:
            self._free += 1
            self._served.clear()
            return
        at_work, served = self._at_work, self._served

        def turn(one: _Waits) -> tuple[int, ...]:
            who = one.network, one.visitor
            return *(number for each in who for number in (at_work[each], served.get(each, 0))), one.came

        chosen = min(self._line, key=turn)
        self._line.remove(chosen)
        served |= dict.fromkeys((chosen.network, chosen.visitor), next(self._clock))
        chosen.called.set_result(None)

    def _count(self, network: str, visitor: str, change: int) -> None:
        for who in (network, visitor):
            self._at_work[who] += change
            if not self._at_work[who]:
                del self._at_work[who]
