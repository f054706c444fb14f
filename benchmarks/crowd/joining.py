"""A class of thirty: all join within ten seconds, train the class's run, and their teacher's board looks on."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from unittest.mock import patch

import httpx

from tests.ui.raw import RawCaller

from ..serving import served
from .learner import train, words
from .visitor import Visitor, connected

STUDENTS, WITHIN, STEPS = 30, 10.0, 30
LOOK = 3.0


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """How long joining and looking take, and whether the board knows every run in the end."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"PLAYGROUND_DATA": folder}),
        served("--limits", "class") as (address, _, _),
    ):
        alone, joins, looks, complete, seconds, errors = asyncio.run(_class(address))
    for what, first, waits in (
        ("joining a class", alone[0], joins),
        ("the teacher's board, one look", alone[1], looks),
    ):
        middle, most = statistics.median(waits), max(waits)
        yield f"{what}, s: alone; median", f"{first:.2f}", f"{middle:.2f}", f"{middle / first:.1f}×"
        yield f"{what}, s: alone; worst", f"{first:.2f}", f"{most:.2f}", f"{most / first:.1f}×"
    yield f"runs of {STEPS} steps that the board knows to be complete", "", f"{complete} of {STUDENTS + 1}", ""
    yield "from the first to join to the last run, s", "", f"{seconds:.0f}", ""
    yield "errors that anybody saw", "", f"{len(errors)} {'; '.join(sorted(set(errors))[:4])}".strip(), ""


async def _class(address: str) -> tuple[tuple[float, float], list[float], list[float], int, float, list[str]]:
    house, joins, looks, errors = RawCaller(address), [], [], []
    async with connected(address, STUDENTS + 2) as client:
        teacher = Visitor(client, house)
        await teacher.open()
        for name, value in {"class-size": "tiny", "class-steps": STEPS}.items():
            teacher.set(name, value)
        await teacher.press("class-make")
        code = teacher.values[house.endpoint("class-make")["outputs"][0]]
        await teacher.press("class-open")

        async def student(number: int, after: float) -> None:
            try:
                await asyncio.sleep(after)
                visitor = Visitor(client, house)
                await visitor.open()
                visitor.set("class-code", code)
                visitor.set("class-name", f"Student {number % 7}")  # some of one name
                joins.append(await visitor.press("class-join"))
                run = await train(visitor, steps=STEPS)
                if any("rror" in said for said in run.told):
                    raise RuntimeError(run.told[-1])
            except (httpx.HTTPError, RuntimeError) as problem:
                errors.append(f"{type(problem).__name__}: {str(problem)[:200]}")

        await student(0, 0.0)
        alone = joins.pop(), await teacher.press("class-sort", "input")
        began, chance = time.monotonic(), random.Random(0)
        going = asyncio.gather(*(student(n, WITHIN * chance.random()) for n in range(1, STUDENTS + 1)))
        while not going.done():
            await asyncio.sleep(LOOK)
            try:
                looks.append(await teacher.press("class-sort", "input"))
            except (httpx.HTTPError, RuntimeError) as problem:
                errors.append(f"the teacher: {type(problem).__name__}: {str(problem)[:200]}")
        seconds = time.monotonic() - began
        await teacher.press("class-sort", "input")
        complete = words(teacher.get("class-table")).count(f"{STEPS} of {STEPS} ")
    return alone, joins, looks, complete, seconds, errors
