"""Twenty visitors change the head they look at, all at once, against one who does as many changes alone."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator

from tests.ui.raw import RawCaller

from ..serving import served
from .visitor import Visitor, connected
from .writing import p95

VISITORS, CHANGES = 20, 6


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """The share that each would have if all worked in turns is the time of one who does it all, over their changes."""
    with served() as (address, _, _):
        alone, seconds = asyncio.run(_looking(address, 1, VISITORS * CHANGES))
        crowd, _ = asyncio.run(_looking(address, VISITORS, CHANGES))
    fair = seconds / CHANGES
    yield f"head change on Inspect, {VISITORS} visitors: 95 % s", f"{p95(alone):.2f}", f"{p95(crowd):.2f}", "", ""
    yield "the same against the fair share", f"{fair:.2f}", f"{p95(crowd):.2f}", f"{p95(crowd) / fair:.2f}×", "≤ 1.5×"


async def _looking(address: str, visitors: int, changes: int) -> tuple[list[float], float]:
    """Seconds of every change, and of all together."""
    house, took = RawCaller(address), []
    async with connected(address, visitors) as client:
        everybody = [Visitor(client, house) for _ in range(visitors)]
        for number, visitor in enumerate(everybody):
            prompt = "Mia sat on a hill. Tom sat by the sea." + " Zoe." * (number % 3)
            await visitor.open()
            await visitor.looks("inspect", prompt=prompt)

        async def look(visitor: Visitor) -> None:
            for change in range(changes):
                took.append(await visitor.looks("inspect", layer=1, head=change % 4))

        began = time.perf_counter()
        await asyncio.gather(*map(look, everybody))
        return took, time.perf_counter() - began
