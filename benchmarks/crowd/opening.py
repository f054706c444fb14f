"""Opening the page: what the server does for the first visitor, and for those who come later."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator

from tests.ui.raw import RawCaller

from ..serving import served
from .visitor import Visitor, connected


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Seconds of all handlers of a page load together."""
    with served() as (address, _, _):
        first, *later = asyncio.run(_openings(address, 8))
    what = "handlers of a page load, s: the first of a fresh server; later ones"
    yield what, f"{first:.2f}", f"{max(later):.2f}", "", "1.5; 0.15"


async def _openings(address: str, times: int) -> list[float]:
    house = RawCaller(address)
    async with connected(address, 1) as client:
        return [await Visitor(client, house).open() for _ in range(times)]
