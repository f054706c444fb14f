"""The attacks of H1 to H4 go on while forty visitors train and forty write, under the limits of a public page.

The attackers are one address, the others have one each: a header says so, to a server that was told of a proxy. What
the attackers ask for is bounded in number, and ends with the last visitor at the latest.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.server
import json
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from unittest.mock import patch

import httpx

from playground import kept
from playground.service.limits import PUBLIC
from playground.ui.under_way import tick
from tests.ui.raw import RawCaller

from ..serving import processor_seconds, resident_mb
from .learner import TEXT, begin, look
from .visitor import Visitor, connected
from .watching import logged, tell
from .writing import PROMPT

STEPS, TOKENS = 50, 100
SOMETIMES = tick(None, waits=True)
"""Seconds between two looks of a page whose run waits in the line."""
BARE, LOUD, SHORT, LARGE = 63, 24, 120, 40
"""H1: calls without a listener, and pages that train as long as they may; H2: runs of a step; H4: texts of 200 MB."""
SMALL = {"size": "tiny", "Context": 32, "Batch": 8, "Steps between samples": 0}
"""What else forty runs of two cores are like that begin and end within minutes."""
MINUTES = 4.5
"""For each of the two passes, at most."""
OWN_MB = 700.0
"""What the server takes before there are models and caches: torch, gradio, the runs' activations."""


@dataclass
class Seen:
    """What the visitors saw."""

    asked: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Between which two seconds each run was asked for."""
    began: dict[int, tuple[float, float]] = field(default_factory=dict)
    """When it was last seen in the line, and first seen to be at work."""
    trained: int = 0
    wrote: int = 0
    first: list[float] = field(default_factory=list)
    """Seconds to each writer's first text."""
    errors: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    """What the attackers heard."""
    peak: float = 0.0
    budget: float = 0.0
    server_seconds: float = 0.0
    """Of the processors, as in the two lines below, from the first visitor to the last."""
    callers_seconds: float = 0.0
    """What visitors and attackers themselves took on the same processors."""
    seconds: float = 0.0
    leaked: int = 0
    """Requests to the Hub with the machine's own token."""


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Completed, order, waits and memory: without the attacks, and with them."""
    count = options.visitors if options.visitors != 46 else 40
    calm, attacked = (_pass(count, attack=attack) for attack in (False, True))
    what = f"undisturbed; under attack: {count} train {STEPS} steps and {count} write {TOKENS} tokens: "
    yield what + "runs complete", f"{calm.trained} of {count}", f"{attacked.trained} of {count}", "", f"{count}"
    yield "texts complete", f"{calm.wrote} of {count}", f"{attacked.wrote} of {count}", "", f"{count}"
    yield "runs that one begun later had asked for earlier", f"{_passed(calm)}", f"{_passed(attacked)}", "", "0"
    evenly = (f"{_unfair(seen):.2f}×" for seen in (calm, attacked))
    yield "longest wait for a place ÷ that of a line that moves evenly from first to last", *evenly, "", "≤ 1.5×"
    last = [max((seen.began[n][1] - seen.asked[n][0] for n in seen.began), default=0.0) for seen in (calm, attacked)]
    fair = last[0] * (count + 1) / count
    what = "longest wait for a place, s ÷ fair share (undisturbed, with one address more)"
    yield what, *(f"{x:.1f}" for x in last), f"{last[1] / max(fair, 0.1):.2f}×", "≤ 1.5×"
    yield (
        "processor s: the server's; callers', on the same two cores; s in all",
        *(f"{x.server_seconds:.0f}; {x.callers_seconds:.0f}; {x.seconds:.0f}" for x in (calm, attacked)),
        "",
        "",
    )
    first = [max(seen.first, default=float("nan")) for seen in (calm, attacked)]
    yield "longest wait for a first text, s", *(f"{x:.2f}" for x in first), f"{first[1] / first[0]:.2f}×", ""
    yield "peak memory, MB; budget", *(f"{s.peak:,.0f}; {s.budget:,.0f}" for s in (calm, attacked)), "", "within"
    yield "requests to the Hub with the machine's own token", f"{calm.leaked}", f"{attacked.leaked}", "", "0"
    for seen in (calm, attacked):
        yield "errors that visitors saw", "", f"{len(seen.errors)} {'; '.join(sorted(set(seen.errors))[:3])}", "", "0"
    heard = "; ".join(f"{count} × {answer}" for answer, count in attacked.answers.most_common(12))
    yield "answers to the attackers", "", heard, "", ""


def _passed(seen: Seen) -> int:
    """Pairs of which one was certainly asked for before the other, and was still in the line when that was at work."""
    at = [(*seen.asked[number], *seen.began[number]) for number in seen.began]
    return sum(answered < sent and waited > begun for _, answered, waited, _ in at for sent, _, _, begun in at)


def _unfair(seen: Seen) -> float:
    """The longest wait against that of an even line: the nth of N begins after n/N of the whole time.

    As many begin at once as there are places, so each counts as the last of as many.
    """
    order = sorted(seen.began, key=lambda number: seen.asked[number][1])
    if not order:
        return float("nan")
    start = min(sent for sent, _ in seen.asked.values())
    whole, count = max(begun for _, begun in seen.began.values()) - start, len(order)
    worst = 0.0
    for place, number in enumerate(order, PUBLIC.jobs):
        share = max(whole * min(place / count, 1.0), 2 * SOMETIMES)
        worst = max(worst, (seen.began[number][1] - start) / share)
    return worst


def _pass(count: int, *, attack: bool) -> Seen:
    tell(f"attacks: {count} train and {count} write {'under attack' if attack else 'undisturbed'}")
    token = "hf_" + secrets.token_hex(12)
    with (
        _hub(token) as (hub, leaked),
        patch.dict(os.environ, {"HF_TOKEN": token, "HF_ENDPOINT": hub}),
        logged("--limits", "public", "--behind-proxy", "--ephemeral") as (address, process, complaints),
    ):
        seen = asyncio.run(_scene(address, process.pid, count, attack))
        if log := complaints().removeprefix("0").strip():
            seen.errors.append(f"log: {log}")
    seen.leaked = len(leaked)
    return seen


@contextlib.contextmanager
def _hub(token: str) -> Iterator[tuple[str, list[str]]]:
    """A stand-in for the Hub that has nothing, and the requests that brought it this machine's own token."""
    leaked: list[str] = []

    class Nothing(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            if token in str(self.headers):
                leaked.append(self.path)
            self.send_error(404)

        do_GET = do_HEAD = do_POST = answer

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", leaked
    finally:
        server.shutdown()


async def _scene(address: str, pid: int, count: int, attack: bool) -> Seen:
    seen, house, until = Seen(), RawCaller(address), time.monotonic() + 60 * MINUTES
    seen.budget = OWN_MB + (PUBLIC.model_bytes + kept.CACHE_BYTES) / 1e6

    async def bravely(visit: Awaitable[None]) -> None:
        try:
            await asyncio.wait_for(visit, max(until - time.monotonic(), 0.1))
        except (httpx.HTTPError, RuntimeError, asyncio.TimeoutError) as problem:
            seen.errors.append(f"{type(problem).__name__}: {problem}"[:160])

    async def watch() -> None:
        while True:
            seen.peak = max(seen.peak, resident_mb(pid))
            await asyncio.sleep(0.2)

    async with connected(address, 2 * count + BARE + LOUD) as client:
        watching = asyncio.create_task(watch())
        attackers = [asyncio.create_task(each) for each in (_attacks(client, house, seen, until) if attack else ())]
        await asyncio.sleep(8.0 if attack else 0.0)  # what there is to fill is full
        before = processor_seconds(pid), time.process_time(), time.monotonic()
        train = (bravely(_train(Visitor(_from(client, f"203.0.113.{n}"), house), n, seen)) for n in range(count))
        write = (bravely(_write(_from(client, f"192.0.2.{n}"), n, seen)) for n in range(count))
        await asyncio.gather(*train, *write)
        seen.server_seconds, seen.callers_seconds = processor_seconds(pid) - before[0], time.process_time() - before[1]
        seen.seconds = time.monotonic() - before[2]
        for each in (watching, *attackers):
            each.cancel()
        await asyncio.gather(watching, *attackers, return_exceptions=True)
    return seen


class _from:
    """A client whose requests come from this address, as the proxy says."""

    def __init__(self, client: httpx.AsyncClient, origin: str):
        self.client, self.headers = client, {"X-Forwarded-For": origin}

    async def post(self, path: str, *, headers: dict[str, str] | None = None, **more) -> httpx.Response:
        """A POST from there."""
        return await self.client.post(path, headers={**self.headers, **(headers or {})}, **more)

    async def get(self, path: str, **more) -> httpx.Response:
        """A GET from there."""
        return await self.client.get(path, headers=self.headers, **more)

    def stream(self, method: str, path: str, **more):
        """An answer as it comes."""
        return self.client.stream(method, path, headers=self.headers, **more)


# ---- visitors --------------------------------------------------------------------------------------------------------


async def _train(visitor: Visitor, number: int, seen: Seen) -> None:
    await visitor.open()
    for name, value in {**SMALL, "learn": "text", "text": TEXT, "Steps": STEPS, "Seed": number}.items():
        visitor.set(name, value)
    sent = time.monotonic()
    await begin(visitor)
    seen.asked[number] = sent, (waited := time.monotonic())
    while True:
        asked = time.monotonic()
        said, pause = await look(visitor)
        if number not in seen.began:
            if re.search(r"in line|Waiting for a place", said):
                waited = asked
            else:
                seen.began[number] = waited, time.monotonic()
        if pause is None:
            break
        await asyncio.sleep(pause)
    if f"All {STEPS} steps are done" not in said:
        raise RuntimeError(said[:160])
    seen.trained += 1


async def _write(client: _from, number: int, seen: Seen) -> None:
    began, kind = time.monotonic(), ""
    asked = [PROMPT, "", TOKENS, 0.8, 0, 1.0, number, "", "fp32"]
    call = await client.post("/gradio_api/call/generate", json={"data": asked})
    call.raise_for_status()
    async with client.stream("GET", f"/gradio_api/call/generate/{call.json()['event_id']}") as lines:
        async for line in lines.aiter_lines():
            kind = line.removeprefix("event:").strip() if line.startswith("event:") else kind
            if line.startswith("data:") and kind == "error":
                raise RuntimeError(line[:160])
            if line.startswith("data:") and kind in ("generating", "complete"):
                if len(seen.first) <= seen.wrote + 80 and began:
                    seen.first.append(time.monotonic() - began)
                    began = 0.0
                if kind == "complete":
                    seen.wrote += json.loads(line.removeprefix("data:"))[0]["done"]
                    return


# ---- attackers -------------------------------------------------------------------------------------------------------


def _attacks(client: httpx.AsyncClient, house: RawCaller, seen: Seen, until: float) -> list[Awaitable[None]]:
    mob = _from(client, "198.51.100.7")

    async def again(name: str, times: int, pause: float, act: Callable[[], Awaitable[str]]) -> None:
        for _ in range(times):
            if time.monotonic() > until:
                return
            try:
                answer = await act()
            except (httpx.HTTPError, RuntimeError) as problem:
                answer = str(problem) or type(problem).__name__
            seen.answers[f"{name}: {re.sub(r'[0-9]+', 'N', answer)[:70]}"] += 1
            await asyncio.sleep(pause)

    async def bare() -> str:
        """H1: a call to which nobody listens."""
        answer = await mob.post("/gradio_api/call/train", json={"data": ["", "stories", "tiny", 5000, "", {}, ""]})
        return str(answer.status_code)

    async def invented() -> str:
        """H1: the page's own handler, with an id that nobody issued."""
        visitor = Visitor(mob, house)
        visitor.values[house.component("browserstate")] = secrets.token_urlsafe(36)
        await visitor.submits("train_form")
        return "begun"

    async def loud() -> str:
        """H1, by somebody who has read the page: an id of the server's, a page that looks, the longest run there is."""
        visitor = Visitor(mob, house)
        await visitor.open()
        visitor.set("Steps", 5000)
        await begin(visitor)
        for _ in range(200):
            await asyncio.sleep(2.0)
            said, _ = await look(visitor)
        return said

    async def short() -> str:
        """H2: a run of one step, which leaves a model."""
        settings = {"d_model": 16, "n_layers": 1, "n_heads": 2, "context_length": 16, "batch_size": 4}
        asked = ["", "copy", "tiny", 1, "", settings, ""]
        call = await mob.post("/gradio_api/call/train", json={"data": asked})
        said = "no answer"
        async with mob.stream("GET", f"/gradio_api/call/train/{call.json()['event_id']}") as lines:
            async for line in lines.aiter_lines():
                said = line.removeprefix("event:").strip() if line.startswith("event:") else said
        return said

    async def owner() -> str:
        """H3: the headers of somebody who sits at this machine."""
        visitor = Visitor(_from(client, "127.0.0.1"), house)
        visitor.client.headers["Host"] = house.address.removeprefix("http://")
        await visitor.open()
        await visitor.does("hub_pull", repo="somebody/model")
        return "pulled"

    async def large() -> str:
        """H4: a text of 200 MB."""

        async def text() -> AsyncIterator[bytes]:
            yield b'{"data": ["'
            for _ in range(200):
                yield b"word " * 200_000
            yield b'", "", "tiny", 50, "", {}, ""]}'

        answer = await mob.post("/gradio_api/call/train", content=text(), headers={"Content-Type": "application/json"})
        return str(answer.status_code)

    return [
        again("H1 bare", BARE, 0.1, bare),
        again("H1 invented", BARE, 0.2, invented),
        *(again("H1 loud", 3, 0.5, loud) for _ in range(LOUD)),
        *(again("H2", SHORT // 2, 0.1, short) for _ in range(2)),
        again("H3", 10, 2.0, owner),
        *(again("H4", LARGE, 0.5, large) for _ in range(3)),
    ]
