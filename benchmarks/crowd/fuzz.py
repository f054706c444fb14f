"""Hundreds of calls that no page would make: wrong types, what is no number, megabytes, foreign names."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import httpx

from tests.ui.raw import RawCaller

from .visitor import Visitor, connected
from .watching import logged, tell

SEED = 20
AT_ONCE = 8


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """What such calls leave: tracebacks in the server's log, a server that still answers."""
    with logged("--limits", "public") as (address, process, complaints):
        answers = asyncio.run(_calls(address, options.calls))
        alive = process.poll() is None
        status = httpx.get(f"{address}/status", timeout=60).json()
        log = complaints()
    found = ", ".join(f"{count} × {answer}" for answer, count in sorted(answers.items()))
    yield f"{options.calls} calls with nonsense: answers", "", found, "", ""
    yield "tracebacks in the log", "", log, "", "0"
    yield "the server lives; jobs and models then", "", f"{alive}; {json.dumps(status['jobs'])}", "", "True"


async def _calls(address: str, times: int) -> dict[str, int]:
    house, dice, answers = RawCaller(address), random.Random(SEED), {}
    handlers = [d for d in house.config["dependencies"] if d["backend_fn"]]
    lane = asyncio.Semaphore(AT_ONCE)
    async with connected(address, AT_ONCE) as client:

        async def call(number: int) -> None:
            dependency, visitor = handlers[number % len(handlers)], Visitor(client, house)
            for component in dependency["inputs"]:
                if dice.random() < 0.5:
                    visitor.values[component] = _nonsense(dice)
            said = dice.choice([None, _nonsense(dice), {"index": _nonsense(dice), "value": _nonsense(dice)}])
            async with lane:
                try:
                    await asyncio.wait_for(visitor.call(dependency, said), 120)
                    answer = "answered"
                except RuntimeError as problem:
                    answer = "refused by a sentence" if "error" in str(problem) else str(problem)[:80]
                except (httpx.HTTPError, asyncio.TimeoutError) as problem:
                    answer = type(problem).__name__
                answers[answer] = answers.get(answer, 0) + 1
                if sum(answers.values()) % 100 == 0:
                    tell(f"fuzz: {sum(answers.values())} of {times} calls")

        await asyncio.gather(*(call(number) for number in range(times)))
    return answers


def _nonsense(dice: random.Random) -> Any:
    """Something that no component of a page would send."""
    numbers = [True, -1, 0, 1e308, 10**30, math.pi]
    texts = ["", "NaN", "\ud800x", "../../../etc/passwd", "<b>x</b>", "shipped-stories", "run-" + "0" * 22]
    file = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
    tables = [{}, {"__type__": "update"}, {"path": "/etc/passwd"}, file, {"index": [10**9, -1]}]
    long = "a" * dice.choice([10, 10_000, 10_000_000])
    return dice.choice([None, *numbers, *texts, *tables, [], [[]], ["x"] * 1000, long])
