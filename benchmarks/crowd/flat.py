"""Nothing grows: memory, threads, files and sessions after many visits, cancelled runs and reloads in training."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import httpx

from tests.ui.raw import RawCaller

from ..serving import resident_mb
from .learner import TEXT, begin, look, train
from .visitor import Visitor, connected
from .watching import logged, tell

SECONDS = 340.0
"""For all three, the last with what the others leave; which did not come to all of its times says to how many."""


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """What the server holds after half of the times, when all that it may remember is full, and after all of them."""
    scenes = (("cancelled runs", _cancel), ("reloads in training", _reload), ("visits", _visit))
    began = time.monotonic()
    for number, (name, scene) in enumerate(scenes, 1):
        until = began + SECONDS * number / len(scenes)
        with logged("--limits", "public") as (address, process, complaints):
            held = asyncio.run(_repeated(address, process.pid, scene, name, options.times, until))
            log = complaints()
        half = [turn for turn in held if 2 * turn <= max(held)]
        early, late = held[half[-1] if half else min(held)], held[max(held)]
        first, last = (", ".join(f"{value:,.0f} {what}" for what, value in each.items()) for each in (early, late))
        ratio = f"{late['MB'] / early['MB']:.2f}× memory"
        yield f"after {half[-1] if half else min(held)} and {max(held)} {name}", first, last, ratio, "flat"
        yield "tracebacks in the log", "", log, "", "0"


async def _repeated(
    address: str, pid: int, scene: Callable[[Visitor], Awaitable[None]], name: str, times: int, until: float
) -> dict[int, dict[str, float]]:
    """After how many times → what the server held; as many of them as there is time for."""
    house, held = RawCaller(address), {}
    one: Visitor | None = None
    async with connected(address, 4) as client:
        for turn in range(1, times + 1):
            visitor = Visitor(client, house)
            if scene is _reload:
                if one is None:
                    one = visitor
                    await one.open()
                    one.set("Steps", 5000)
                    await begin(one)
                visitor.set("browserstate", one.id)
            here = asyncio.create_task(visitor.stay())
            await scene(visitor)
            here.cancel()
            over = turn == times or time.monotonic() > until
            if turn % max(times // 10, 1) == 0 or over:
                held[turn] = await _settled(client, pid, working=int(scene is _reload))
                tell(f"flat: {turn} of {times} {name}: {held[turn]}")
            if over:
                return held
    raise AssertionError("nothing was asked for")


async def _settled(client: httpx.AsyncClient, pid: int, working: int) -> dict[str, float]:
    """What the server holds once no more than so many runs go on."""
    for _ in range(20):
        await asyncio.sleep(0.5)
        status = json.loads((await client.get("/status")).text)
        if status["jobs"]["working"] <= working:
            break
    return _held(pid) | {"models": status["models"]["of_visitors"], "sessions": status["page"]["sessions"]}


async def _visit(visitor: Visitor) -> None:
    await visitor.open()
    await train(visitor, steps=20, learn="text", text=TEXT, size="tiny", Context=16, Layers=1)
    await visitor.writes(new_tokens=20)


async def _cancel(visitor: Visitor) -> None:
    await visitor.open()
    visitor.set("Steps", 5000)
    await begin(visitor)
    await visitor.does("stop_run")
    for _ in range(600):
        _, pause = await look(visitor)
        if pause is None:
            return
        await asyncio.sleep(0.05)


async def _reload(visitor: Visitor) -> None:
    await visitor.open()


def _held(pid: int) -> dict[str, float]:
    process = Path("/proc") / str(pid)
    return {
        "MB": resident_mb(pid),
        "threads": len(os.listdir(process / "task")),
        "files": len(os.listdir(process / "fd")),
    }
