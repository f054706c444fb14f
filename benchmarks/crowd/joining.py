"""A class of thirty: all join within ten seconds and do lesson 1 with the class's run; the board looks on."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from unittest.mock import patch

import httpx

from playground.lessons.reading import Lesson, find_lesson
from tests.ui.raw import RawCaller

from ..serving import served
from .learner import train, words
from .visitor import Visitor, connected

STUDENTS, WITHIN, STEPS = 30, 10.0, 30
LOOK = 3.0
LESSON = "first-model"


@dataclass
class Seen:
    """What there is to tell of the class."""

    joins: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    """Seconds of every press in the lesson."""
    looks: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    alone: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """One who joins alone, presses alone, looks alone."""
    runs: int = 0
    lessons: int = 0
    """Complete ones on the board in the end."""
    seconds: float = 0.0


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """How long joining, the lesson's presses and looking take, and what the board knows in the end."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"PLAYGROUND_DATA": folder}),
        served("--limits", "class") as (address, began, _),
    ):
        _say(f"the page answers after {began:.0f} s")
        seen = asyncio.run(_class(address, options.minutes * 60))
    for what, first, waits in (
        ("joining a class", seen.alone[0], seen.joins),
        ("a press in the lesson", seen.alone[1], seen.steps),
        ("the teacher's board, one look", seen.alone[2], seen.looks),
    ):
        middle, most = (statistics.median(waits), max(waits)) if waits else (float("nan"),) * 2
        yield f"{what}, s: alone; median", f"{first:.2f}", f"{middle:.2f}", f"{middle / first:.1f}×"
        yield f"{what}, s: alone; worst", f"{first:.2f}", f"{most:.2f}", f"{most / first:.1f}×"
    steps = len(find_lesson(LESSON).steps)
    yield f"runs of {STEPS} steps that the board knows to be complete", "", f"{seen.runs} of {STUDENTS + 1}", ""
    yield f"students with all {steps} steps of the lesson done", "", f"{seen.lessons} of {STUDENTS + 1}", ""
    yield "from the first to join to the last to be done, s", "", f"{seen.seconds:.0f}", ""
    yield "errors that anybody saw", "", f"{len(seen.errors)} {'; '.join(sorted(set(seen.errors))[:4])}".strip(), ""


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def _class(address: str, most: float) -> Seen:
    house, seen, lesson = RawCaller(address), Seen(), find_lesson(LESSON)
    async with connected(address, STUDENTS + 2) as client:
        teacher = Visitor(client, house)
        await teacher.open()
        made = await teacher.does("make_class", hours="2", steps=STEPS, lesson=LESSON, changes="seed")
        code = made["move"]["code"]
        await teacher.looks("class", **made["move"])

        async def student(number: int, after: float) -> None:
            try:
                await asyncio.sleep(after)
                visitor = Visitor(client, house)
                await visitor.open()
                pressed = time.perf_counter()
                await visitor.does("join_class", code=code, name=f"Student {number % 7}")  # some of one name
                await visitor.looks("class", code=code)
                seen.joins.append(time.perf_counter() - pressed)
                await _learn(visitor, lesson, seen)
            except (httpx.HTTPError, RuntimeError) as problem:
                seen.errors.append(f"{type(problem).__name__}: {str(problem)[:200]}")

        async def look() -> None:
            seen.looks.append(await teacher.looks("class"))
            board = words(teacher.slots["class"]["table"])
            seen.runs = len(re.findall(rf"\b{STEPS} of {STEPS}\b", board))
            seen.lessons = len(re.findall(rf"\b{len(lesson.steps)} of {len(lesson.steps)} steps", board))

        await student(0, 0.0)
        await look()
        seen.alone = seen.joins.pop(), statistics.median(seen.steps), seen.looks.pop()
        seen.steps.clear()
        _say(f"one alone is through the lesson: {seen.runs} run, {seen.lessons} lesson on the board")
        began, chance = time.monotonic(), random.Random(0)
        going = asyncio.gather(*(student(n, WITHIN * chance.random()) for n in range(1, STUDENTS + 1)))
        while not going.done() and time.monotonic() < began + most:
            await asyncio.sleep(LOOK)
            try:
                await look()
            except (httpx.HTTPError, RuntimeError) as problem:
                seen.errors.append(f"the teacher: {type(problem).__name__}: {str(problem)[:200]}")
            said = f"{len(seen.joins)} joined, {seen.runs} runs and {seen.lessons} lessons complete"
            _say(f"{time.monotonic() - began:4.0f} s: {said}, {len(seen.errors)} errors")
        if not going.done():
            seen.errors.append(f"not done after {most:.0f} s")
            going.cancel()
        await asyncio.gather(going, return_exceptions=True)
        seen.seconds = time.monotonic() - began
        await look()
    return seen


async def _learn(visitor: Visitor, lesson: Lesson, seen: Seen) -> None:
    """The whole lesson: guess, train the class's run, and do what each step asks for."""

    async def press(do: str, **more: object) -> dict:
        seen.steps.append(await visitor.press("lessons", "select", {"do": do, **more}))
        return visitor.get("lessons")

    await press("open", lesson=lesson.id)
    for number, step in enumerate(lesson.steps):
        await press("go", step=number)
        if step.ask is not None:
            await press("guess", guess=next(iter(step.ask.choices)) if step.ask.choices else step.ask.number.most / 2)
        if step.doing == "run":
            run = await train(visitor, steps=STEPS)
            if any("rror" in said for said in run.told):
                raise RuntimeError(run.told[-1])
            await press("look")
        elif step.done:
            await press("did", step=step.id)
        for _ in range(20):
            if "lesson-told" in str(visitor.get("lessons")):
                break
            await asyncio.sleep(1.0)  # what it writes is judged after the run
            await press("look")
        else:
            raise RuntimeError(f"step {step.id} was not done: {words(visitor.get('lessons'))[:200]}")
