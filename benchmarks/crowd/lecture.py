"""A lecture: forty-six write again and again, four train, for three minutes, under the limits of a class."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Iterator

import httpx

from tests.ui.raw import RawCaller

from .learner import TEXT, train
from .visitor import Visitor, connected
from .watching import logged, tell
from .writing import TOKENS

LEARNERS = 4


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Errors, and how long the most patient had to wait against the mean."""
    minutes = options.minutes or 3
    with logged("--limits", "class") as (address, _, complaints):
        texts, runs, errors, told = asyncio.run(_lecture(address, options.visitors, minutes * 60))
        log = complaints()
    means = [statistics.mean(waits) for waits in texts if waits]
    mean, longest = statistics.mean(means), max(means)
    most = max(max(waits) for waits in texts if waits)
    what = f"{options.visitors} write and {LEARNERS} train for {minutes:g} minutes: "
    yield what + "errors", "", f"{len(errors)} {'; '.join(sorted(set(errors))[:3])}".strip(), "", "0"
    yield "tracebacks in the log", "", log, "", "0"
    yield (
        f"{sum(map(len, texts)):,} texts: wait for the first word, s: mean; of the visitor who waits longest",
        *(f"{x:.2f}" for x in (mean, longest)),
        f"{longest / mean:.2f}×",
        "≤ 3×",
    )
    yield "the longest of all those waits, s", "", f"{most:.2f}", f"{most / mean:.2f}×", ""
    trained = [statistics.mean(waits) for waits in runs if waits]
    yield (
        f"{sum(map(len, runs))} runs: wait for the first step, s: mean; longest",
        *(f"{x:.2f}" for x in (statistics.mean(trained), max(trained))),
        f"{max(trained) / statistics.mean(trained):.2f}×",
        "≤ 3×",
    )
    yield "refusals, other than a place in the line", "", str(told), "", "0"


async def _lecture(
    address: str, writers: int, seconds: float
) -> tuple[list[list[float]], list[list[float]], list[str], int]:
    """(waits of each writer, waits of each learner, errors, refusals)."""
    house, until, errors, refused = RawCaller(address), time.monotonic() + seconds, [], 0
    async with connected(address, writers + LEARNERS) as client:

        async def write(waits: list[float]) -> None:
            visitor = Visitor(client, house)
            await visitor.open()
            while time.monotonic() < until:
                await visitor.writes(new_tokens=TOKENS)
                waits.append(visitor.first)

        async def learn(waits: list[float], number: int) -> None:
            nonlocal refused
            visitor = Visitor(client, house)
            await visitor.open()
            while time.monotonic() < until:
                run = await train(visitor, steps=400, until=until, example="text", text=TEXT, Seed=number)
                if run.first:
                    waits.append(run.first)
                refused += sum("try again" in said or "full" in said for said in run.told)

        async def bravely(scene) -> None:
            try:
                await scene
            except (httpx.HTTPError, RuntimeError) as problem:
                errors.append(f"{type(problem).__name__}: {problem}")

        async def progress() -> None:
            while time.monotonic() < until:
                await asyncio.sleep(min(30, max(until - time.monotonic(), 0)))
                tell(f"lecture: {sum(map(len, texts))} texts, {sum(map(len, runs))} runs, {len(errors)} errors")

        texts: list[list[float]] = [[] for _ in range(writers)]
        runs: list[list[float]] = [[] for _ in range(LEARNERS)]
        await asyncio.gather(
            *(bravely(write(waits)) for waits in texts),
            *(bravely(learn(waits, number)) for number, waits in enumerate(runs)),
            progress(),
        )
    return texts, runs, errors, refused
