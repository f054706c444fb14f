"""Nothing grows: memory, threads, files and sessions after many visits, cancelled runs and reloads in training."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from tests.ui.raw import RawCaller

from ..serving import resident_mb, served
from .learner import TEXT, train
from .visitor import Visitor, connected


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """What the server holds after a quarter of the times, and after all of them."""
    for name, scene in (("visits", _visit), ("cancelled runs", _cancel), ("reloads in training", _reload)):
        with served("--limits", "public") as (address, _, process):
            early, late = asyncio.run(_repeated(address, process.pid, scene, options.times))
        first, last = (", ".join(f"{value:,.0f} {what}" for what, value in held.items()) for held in (early, late))
        times = max(options.times // 4, 1)
        yield f"after {times} and {options.times} {name}", first, last, f"{late['MB'] / early['MB']:.2f}× memory"


async def _repeated(
    address: str, pid: int, scene: Callable[[Visitor], Awaitable[None]], times: int
) -> tuple[dict[str, float], dict[str, float]]:
    house, held = RawCaller(address), []
    one: Visitor | None = None
    async with connected(address, 4) as client:
        for turn in range(1, times + 1):
            visitor = Visitor(client, house)
            if scene is _reload:
                if one is None:
                    one = visitor
                    one.set("Steps", 5000)
                    await one.press("train-button")
                visitor.set("browserstate", one.id)
            here = asyncio.create_task(visitor.stay())
            await scene(visitor)
            here.cancel()
            if turn in (max(times // 4, 1), times):
                await asyncio.sleep(2)
                status = json.loads((await client.get("/status")).text)
                held.append(
                    _held(pid) | {"models": status["models"]["of_visitors"], "sessions": status["page"]["sessions"]}
                )
    return held[0], held[-1]


async def _visit(visitor: Visitor) -> None:
    await visitor.open()
    await train(visitor, steps=20, source="text", text=TEXT, size="tiny", Context=16, Layers=1)
    visitor.set("New tokens", 20)
    await visitor.press("generate-start")


async def _cancel(visitor: Visitor) -> None:
    visitor.set("Steps", 5000)
    await visitor.press("train-button")
    await visitor.press("stop-button")
    for _ in range(600):
        if visitor.shown("stop-button").get("interactive") is False:
            return
        await asyncio.sleep(0.05)
        await visitor.press("timer", "tick")


async def _reload(visitor: Visitor) -> None:
    await visitor.open()


def _held(pid: int) -> dict[str, float]:
    process = Path("/proc") / str(pid)
    return {
        "MB": resident_mb(pid),
        "threads": len(os.listdir(process / "task")),
        "files": len(os.listdir(process / "fd")),
    }
