"""Forty-six visitors write with one model at once, by the page's own API."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx

from ..serving import served
from .visitor import connected

TOKENS = 100
PROMPT = "Mia lived by the sea."
LONG = " ".join([PROMPT] * 8)
"""More tokens than the model's context of 128, so that all that follows is written beyond it."""


@dataclass
class Seen:
    """What visitors saw of their calls."""

    first: list[float] = field(default_factory=list)
    """Seconds to the first text of each call."""
    whole: list[float] = field(default_factory=list)
    """Seconds to its end."""
    errors: list[str] = field(default_factory=list)
    tokens: int = 0


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """First text, whole text, tokens per second, errors."""
    with served() as (address, _, _):
        asyncio.run(_crowd(address, 1, 3, PROMPT))  # the model is loaded, the lanes are open
        alone, alone_rate = _rate(address, 1, 3 * options.rounds, PROMPT)
        if not alone.first:
            raise SystemExit(f"One visitor alone was refused: {alone.errors[0]}")
        crowd, rate = _rate(address, options.visitors, options.rounds, PROMPT)
        alone_beyond, alone_rate_beyond = _rate(address, 1, 3 * options.rounds, LONG)
        crowd_beyond, rate_beyond = _rate(address, options.visitors, options.rounds, LONG)
    for name, one, many, aim in (
        ("first text, median s", statistics.median(alone.first), statistics.median(crowd.first), ""),
        ("first text, 95 % s", p95(alone.first), p95(crowd.first), "≤ 1.5 s"),
        ("whole text, median s", statistics.median(alone.whole), statistics.median(crowd.whole), ""),
        ("tokens/s of all together", alone_rate, rate, "≥ 6×"),
    ):
        what = f"{options.visitors} write {TOKENS} tokens: {name}"
        yield what, f"{one:,.2f}", f"{many:,.2f}", f"{many / one:.2f}×", aim
    ratios = f"{alone_rate_beyond / alone_rate:.2f}×", f"{rate_beyond / rate:.2f}×"
    yield "tokens/s beyond the context against within", *ratios, "", "≥ 0.7×"
    few, many = alone.errors + alone_beyond.errors, crowd.errors + crowd_beyond.errors
    calls, said = len(crowd.whole) + len(crowd_beyond.whole) + len(many), "; ".join(sorted(set(many))[:3])
    yield f"errors of {calls} calls", str(len(few)), f"{len(many)} {said}".strip(), "", "0"


def p95(values: list[float]) -> float:
    """What 95 % of the values do not pass."""
    return sorted(values)[max(int(0.95 * len(values)) - 1, 0)]


def _rate(address: str, visitors: int, rounds: int, prompt: str) -> tuple[Seen, float]:
    began = time.perf_counter()
    seen = asyncio.run(_crowd(address, visitors, rounds, prompt))
    return seen, seen.tokens / (time.perf_counter() - began)


async def _crowd(address: str, visitors: int, rounds: int, prompt: str) -> Seen:
    seen = Seen()
    async with connected(address, visitors) as client:
        await asyncio.gather(*(_visitor(client, number, rounds, prompt, seen) for number in range(visitors)))
    return seen


async def _visitor(client: httpx.AsyncClient, number: int, rounds: int, prompt: str, seen: Seen) -> None:
    for turn in range(rounds):
        try:
            await _generate(client, prompt, 1000 * number + turn, seen)
        except (httpx.HTTPError, RuntimeError) as problem:
            seen.errors.append(f"{type(problem).__name__}: {problem}")


async def _generate(client: httpx.AsyncClient, prompt: str, seed: int, seen: Seen) -> None:
    """One call of /generate, followed to its end."""
    began, first = time.perf_counter(), None
    asked = {"data": [prompt, "", TOKENS, 0.8, 0, 1.0, seed, "", "fp32"]}
    call = await client.post("/gradio_api/call/generate", json=asked)
    call.raise_for_status()
    kind = ""
    async with client.stream("GET", f"/gradio_api/call/generate/{call.json()['event_id']}") as lines:
        async for line in lines.aiter_lines():
            if line.startswith("event:"):
                kind = line.removeprefix("event:").strip()
            elif line.startswith("data:") and kind in ("generating", "complete"):
                first = first or time.perf_counter() - began
                if kind == "complete":
                    seen.tokens += json.loads(line.removeprefix("data:"))[0]["new_tokens"]
                    break
            elif line.startswith("data:") and kind == "error":
                raise RuntimeError(line[:200])
    seen.first.append(first)
    seen.whole.append(time.perf_counter() - began)
