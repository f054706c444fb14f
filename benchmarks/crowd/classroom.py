"""A class of twenty for five minutes: some in real browsers, the others raw; each trains, writes and looks inside."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import httpx

from tests.ui.raw import RawCaller

from ..serving import CHROMIUM
from .learner import TEXT, train
from .visitor import Visitor, connected
from .watching import logged, tell

STUDENTS = 20
PATIENCE = 360_000  # milliseconds: where two cores train for twenty, a place comes after minutes


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """What everybody did in five minutes, and what went wrong."""
    minutes, browsers = options.minutes or 5, options.browsers if shutil.which("chromium") else 0
    with logged("--limits", "class") as (address, _, complaints):
        did, errors = asyncio.run(_class(address, minutes * 60, browsers))
        log = complaints()
    what = f"a class of {STUDENTS}, {browsers} of them in browsers, for {minutes:g} minutes"
    yield what, "", ", ".join(f"{count} × {name}" for name, count in sorted(did.items())), "", ""
    yield "errors that anybody saw", "", f"{len(errors)} {'; '.join(sorted(set(errors))[:4])}".strip(), "", "0"
    yield "tracebacks in the log", "", log, "", "0"


async def _class(address: str, seconds: float, browsers: int) -> tuple[dict[str, int], list[str]]:
    until, did, errors = time.monotonic() + seconds, {}, []

    def done(name: str) -> None:
        did[name] = did.get(name, 0) + 1

    async def bravely(student: Callable[..., Coroutine[Any, Any, None]], *given: Any) -> None:
        while time.monotonic() < until:
            try:
                await student(*given)
            except (httpx.HTTPError, RuntimeError) as problem:
                errors.append(f"{student.__name__}: {type(problem).__name__}: {str(problem)[:200]}")

    async def progress() -> None:
        while time.monotonic() < until:
            await asyncio.sleep(min(30, max(until - time.monotonic(), 0)))
            tell(f"classroom: {did}, {len(errors)} errors")

    house = RawCaller(address)
    async with connected(address, STUDENTS) as client, _chromium(browsers) as chromium:
        raw = [bravely(_raw, Visitor(client, house), number, until, done) for number in range(STUDENTS - browsers)]
        real = [bravely(_real, chromium, address, number, until, done, errors) for number in range(browsers)]
        await asyncio.gather(*raw, *real, progress())
    return did, errors


async def _raw(visitor: Visitor, number: int, until: float, done: Callable[[str], None]) -> None:
    """A lesson, once: open, train on the class's text, write twice, look at three heads."""
    await visitor.open()
    run = await train(visitor, steps=150, until=until, example="text", text=TEXT, size="tiny", Seed=number)
    if any("rror" in said for said in run.told):
        raise RuntimeError(run.told[-1])
    done("trained")
    for _ in range(2):
        await visitor.writes(new_tokens=80)
        done("wrote")
    await visitor.looks("inspect", prompt="Mia sat on a hill.")
    for head in range(3):
        await visitor.looks("inspect", layer=1, head=head)
        done("looked inside")


async def _real(
    chromium: Any, address: str, number: int, until: float, done: Callable[[str], None], errors: list[str]
) -> None:
    """The same lesson in a browser; what the page writes to its console or shows as an error counts as one."""
    from playwright.async_api import Error

    context = await chromium.new_context()
    page = await context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda said: errors.append(f"console: {said.text[:200]}") if said.type == "error" else None)
    page.on("pageerror", lambda problem: errors.append(f"page: {str(problem)[:200]}"))
    try:
        await page.goto(address)
        await page.wait_for_selector("#status:has-text('recorded')")
        await page.wait_for_timeout(1000)
        while time.monotonic() < until:
            await page.get_by_role("tab", name="Train tiny model").click()
            await page.click("#learn label:has-text('My own text')")
            await page.fill("#text textarea", TEXT)
            await page.click("#size label:has-text('Tiny')")
            await page.wait_for_timeout(500)
            await page.click("#train-button")
            await page.wait_for_selector("#stop-button")
            await page.wait_for_selector("#train-button")
            done("trained in a browser")
            await page.get_by_role("tab", name="Generate").click()
            await page.click(".generate-start")
            await page.wait_for_function(
                "document.querySelector('#generate-panel .written')?.innerText.trim().length > 30"
            )
            done("wrote in a browser")
            await page.get_by_role("tab", name="Inspect QKV").click()
            await page.wait_for_selector("#inspect-panel [data-slot=grid] [data-state=drawn]")
            await page.click("#inspect-panel .token >> nth=0")
            done("looked inside in a browser")
            wrong = ".toast-body.error, .run-card .notice-error, #train-problem .notice-error"
            shown = await page.locator(wrong).all_inner_texts()
            errors.extend(f"shown: {text[:200]}" for text in shown)
    except Error as problem:
        raise RuntimeError(str(problem)) from problem
    finally:
        await context.close()


class _chromium:
    """A headless Chromium for the scene, or None where none is wanted."""

    def __init__(self, wanted: int):
        self.wanted = wanted

    async def __aenter__(self) -> Any:
        if not self.wanted:
            return None
        from playwright.async_api import async_playwright

        self.driver = await async_playwright().start()
        self.browser = await self.driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(CHROMIUM))
        return self.browser

    async def __aexit__(self, *error: object) -> None:
        if self.wanted:
            await self.browser.close()
            await self.driver.stop()
