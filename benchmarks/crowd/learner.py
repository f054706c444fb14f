"""One who trains: presses Train, and looks as often as an open page looks."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field

from .visitor import Visitor

TEXT = "The sea is wide and deep. The hill is green and high. We walk from the hill to the sea. " * 30


@dataclass
class Followed:
    """What a run looked like from the page."""

    first: float = 0.0
    """Seconds from Train to the first step, the waiting line included; 0 where there was none."""
    rates: list[float] = field(default_factory=list)
    """Tokens per second, at every look."""
    told: list[str] = field(default_factory=list)
    """What the page said, each sentence once."""


async def train(visitor: Visitor, *, steps: int, until: float = float("inf"), **settings: object) -> Followed:
    """A run until its end, or until the clock passes `until` (seconds of time.monotonic), when it is stopped."""
    began, run = time.monotonic(), Followed()
    for name, value in {"Steps": steps, **settings}.items():
        visitor.set(name, value)
    await begin(visitor)
    stopped = False
    while True:
        said, pause = await look(visitor)
        if not run.told or run.told[-1] != said:
            run.told.append(said)
        if not run.first and re.search(r"Step [1-9]", said):
            run.first = time.monotonic() - began
        if rate := re.search(r"([\d,]+) tokens per second", said):
            run.rates.append(float(rate.group(1).replace(",", "")))
        if pause is None:
            return run
        if time.monotonic() > until and not stopped:
            stopped = True
            await visitor.does("stop_run")
        await asyncio.sleep(pause)


async def begin(visitor: Visitor) -> None:
    """Press Train. Raises RuntimeError with what the page says where nothing begins."""
    try:
        await visitor.submits("train_form")
    except RuntimeError as problem:
        raise RuntimeError(words(str(problem))) from None


async def look(visitor: Visitor) -> tuple[str, float | None]:
    """Look at the run as an open page does: what it says, and seconds until the next look, None where it is over."""
    pause = (await visitor.news())["pause"]
    for panel, changes in (("train-bar", {}), ("train", {"details": True})):
        await visitor.looks(panel, **changes)
    parts = [*visitor.slots["train-bar"].values()]
    parts += [visitor.slots["train"].get(name, "") for name in ("notices", "headline", "about", "numbers", "details")]
    return words(" ".join(map(str, parts))), pause


def words(html: str) -> str:
    """What a page's HTML says."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", str(html))).strip()
