"""Training with the page open and polled as a browser polls, against the same run in the shell, browser left out."""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Iterator

from tests.ui.raw import RawCaller

from ..page import shell_rate
from ..serving import served
from .learner import train
from .visitor import Visitor, connected
from .watching import tell

STEPS = 300


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Ratios of tokens per second, in turns."""
    shells, pages = [], []
    with served() as (address, _, _):
        for _ in range(options.rounds):
            shells.append(shell_rate(STEPS))
            pages.append(asyncio.run(_page_rate(address)))
            tell(f"training: {shells[-1]:,.0f} tokens/s in the shell, {pages[-1]:,.0f} with the page")
    ratios = [page / shell for page, shell in zip(pages, shells)]
    shell, page = statistics.median(shells), statistics.median(pages)
    spread = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    yield (
        "training, tokens/s: in the shell; with the page polled",
        f"{shell:,.0f}",
        f"{page:,.0f}",
        f"{statistics.median(ratios):.2f}× ({spread})",
        "≥ 0.95×",
    )


async def _page_rate(address: str) -> float:
    async with connected(address, 1) as client:
        visitor = Visitor(client, RawCaller(address))
        await visitor.open()
        run = await train(visitor, steps=STEPS)
    return statistics.median(run.rates[2:])
