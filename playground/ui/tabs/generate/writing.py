"""Writing: POST /write answers with a growing text, as lines of JSON; closing the connection ends it.

{"waiting": true}                                      if all places are taken
{"head": {model, name, by, step, given, prompt, kept, part, unit, whole}}
{"new": [[[id, piece, chance], …] for each sample], "state": "34 of 200 · 640 per second"}
{"end": {"cut": …, "said": …, "details": …, "faults": [[[first, last, why], …] for each sample]}}, or {"problem": "…"}
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import accumulate
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ....data import sentences
from ....engine import stream
from ....engine.request import default_slide
from ....kept import Kept
from ....service.limits import TEXTS_AT_ONCE, WRITERS
from ....service.verdicts import Verdict, in_words, verdicts_on
from ....storage import Checkpoint
from ...gradio_fixes.quiet_refusals import OURS, STRANGE
from ...page import Page
from ...panel import Asked
from ...places import Places
from ...prompts import read_prompt, suggestions
from ...refusals import sentence
from ...writers import seconds_between_updates
from .kept import Beginning, by, pieces
from .selection import Selection

CHARACTERS_PER_UPDATE = 1000
"""After this many characters a text is updated half as often as at first, after twice as many a third, and so on."""
UNITS = {"char": "letter", "word": "word"}
"""The kind of tokenizer → its word for a token."""
NO_MASK = (
    "This model was trained without a mask, so it could see the token it had to predict. Its loss is misleading, and "
    "its text makes no sense."
)
ODD = "\N{REPLACEMENT CHARACTER} stands for a token that is not a whole character."
ONE_SENTENCE = "The model learned from single sentences, so it stops here. To continue, change “Stop at”."

_log = logging.getLogger(__name__)
_recorded = Kept(entries=200, megabytes=16)


class Writing:
    """The texts that are being written now, and the route."""

    def __init__(self, page: Page):
        self._page = page
        self._places = Places(WRITERS)
        self._pool = ThreadPoolExecutor(WRITERS, thread_name_prefix="writing")
        self._texts: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many texts are being written."""
        return self._texts.total()

    async def answer(self, request: Request) -> Response:
        """The requested text, or a refusal."""
        try:
            body = await request.json()
            asked = self._page.panels.asked(body, request)
            after = body.get("after")
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return JSONResponse({"problem": STRANGE}, 400)
        if self._texts[asked.visitor] >= TEXTS_AT_ONCE:
            return JSONResponse({"problem": "Too many texts at once. Wait until one of yours is written."}, 429)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._lines(asked, after), media_type="application/x-ndjson", headers=headers)

    async def _lines(self, asked: Asked, after: Any) -> AsyncIterator[str]:
        self._texts[asked.visitor] += 1
        try:
            if self._places.taken:
                yield _line({"waiting": True})
            network = self._page.panels.network(asked.request) if asked.request else ""
            async with self._places.of(network, asked.visitor):
                async for update in self._updates(asked, after):
                    yield _line(update)
        finally:
            self._texts[asked.visitor] -= 1
            if not self._texts[asked.visitor]:
                del self._texts[asked.visitor]

    async def _updates(self, asked: Asked, after: Any) -> AsyncIterator[dict[str, Any]]:
        """What `written` yields, each part computed in a separate thread."""
        stopped, turn = threading.Event(), threading.Lock()
        updates = written(self._page, asked, after, stopped)

        def advance() -> dict[str, Any] | None:
            with turn:
                return next(updates, None)

        def end() -> None:
            with turn:
                updates.close()

        loop = asyncio.get_running_loop()
        try:
            while (update := await loop.run_in_executor(self._pool, advance)) is not None:
                yield update
        except ValueError as problem:
            yield {"problem": sentence(str(problem))}
        except Exception:
            _log.exception("A text ended in an error")
            yield {"problem": OURS}
        finally:  # the browser may have disconnected while a thread works
            stopped.set()
            self._pool.submit(end)


def _line(update: dict[str, Any]) -> str:
    return json.dumps(update, ensure_ascii=False) + "\n"


def written(page: Page, asked: Asked, after: Any, stopped: threading.Event) -> Iterator[dict[str, Any]]:
    """A text as it grows, until it is complete or `stopped`. Raises ValueError if anything makes no sense."""
    chosen, limits = Selection.read(asked.selection), page.limits
    checkpoint = page.registry.get(chosen.model, asked.visitor)
    new_tokens, samples = chosen.amount(limits)
    rules, precision, stops = chosen.sampling(limits), chosen.precision, chosen.stops()
    if after is None:
        ids, notes = read_prompt(page, checkpoint, chosen.prompt or "")
        before = Beginning(ids, [])
    else:
        before, notes = Beginning.read(after, limits, checkpoint), []
    single = not stops and checkpoint.about.get("corpus") == sentences.NAME
    unit = UNITS.get(checkpoint.tokenizer.kind, "token")
    start, given = len(before.tokens), checkpoint.tokenizer.decode(before.prompt)
    kept = pieces(checkpoint.tokenizer, before.prompt, before.tokens)
    yield {"head": {
        "model": chosen.model,
        "name": checkpoint.name,
        "by": by(checkpoint.name, rules, precision, start),
        "step": checkpoint.history.last_step,
        "given": given,
        "prompt": before.prompt,
        "kept": kept,
        "part": {"start": start, "chosen": before.chosen, "rules": rules.to_dict(), "precision": precision},
        "unit": unit,
        "whole": start + new_tokens,
    }}  # fmt: skip
    texts = ["".join(kept)] * samples
    spelled = [list(kept) for _ in range(samples)]
    new: list[list] = [[] for _ in range(samples)]
    began, due, rebuilt, n, step = time.perf_counter(), 0.0, 0, 0, None
    way = {"stop": [sentences.END] if single else stops, "shared": True, "precision": precision}
    so_far = [*before.prompt, *before.tokens]
    streamed = stream(checkpoint.model, checkpoint.tokenizer, so_far, new_tokens, rules, n_samples=samples, **way)
    with closing(streamed):
        for step, tokens in streamed:
            for i, token in enumerate(tokens):
                if token is not None:
                    n += 1
                    piece = token.text
                    new[i].append([token.id, piece, float(f"{token.probability:.5g}")])
                    spelled[i].append(piece)
                    texts[i] += piece
            rebuilt += step.rebuilt
            if stopped.is_set():
                return
            now = time.perf_counter()
            if now >= due:
                due = now + (1 + sum(map(len, texts)) / CHARACTERS_PER_UPDATE) * seconds_between_updates(
                    checkpoint.model
                )
                yield {
                    "new": new,
                    "state": f"{step.index + 1:,} of {new_tokens:,} · {n / (now - began):,.0f} per second",
                }
                new = [[] for _ in range(samples)]
    seconds = time.perf_counter() - began
    yield {"new": new, "state": ""}
    met = step is not None and any(step.stopped)
    verdicts = verdicts_on(checkpoint, texts, given)
    odd = any("\N{REPLACEMENT CHARACTER}" in text for text in texts)
    wrong = [faults(found, each) for found, each in zip(verdicts, spelled)]
    marked = next((found.legend for found, marks in zip(verdicts, wrong) if marks), "")
    said = [in_words(verdicts), marked, ONE_SENTENCE * (single and met), *notes, ODD * odd]
    speed = f"{n:,} {unit}{'s' * (n != 1)} in {seconds:.2f} s ({n / seconds:,.0f} per second)."
    full = slides(checkpoint.config.context_length, rebuilt) if rebuilt else ""
    yield {"end": {
        "cut": step is not None and not all(step.stopped),
        "said": " ".join(filter(None, said)),
        "details": f"{speed} {full}".strip(),
        "faults": wrong,
    }}  # fmt: skip


def recorded(page: Page, visitor: str, model_id: str, checkpoint: Checkpoint) -> dict[str, Any]:
    """The model's first text, as the lines that `/write` would send: written once, with the rules of the form."""

    def write() -> list[dict[str, Any]]:
        prompt = suggestions(page, model_id, visitor)[0]
        asked = Asked(visitor, Selection.first(page.limits).moved(model=model_id, prompt=prompt).to_dict())
        return list(written(page, asked, None, threading.Event()))

    # a model that others have under another id writes the same
    lines = _recorded.get(checkpoint.history.last_step, write, owner=checkpoint.model)
    head = {"head": {**lines[0]["head"], "model": model_id}}
    return {"model": model_id, "recorded": model_id.startswith("shipped-"), "lines": [head, *lines[1:]]}


def faults(found: Verdict | None, spelled: Sequence[str]) -> list[tuple[int, int, str]]:
    """The first and the last token of each word to underline, and why."""
    ends = list(accumulate(map(len, spelled)))
    marks = found.marks if found is not None else ()
    return [(bisect_right(ends, start), bisect_left(ends, end), why) for start, end, why in marks]


def slides(context: int, times: int) -> str:
    """A note that a text's window slid `times` times, because the context of this many tokens was full."""
    n, often = default_slide(context), "once:" if times == 1 else f"{times:,} times: each time"
    oldest = "token was" if n == 1 else f"{n:,} tokens were"
    return f"The context of {context:,} tokens was full {often} its oldest {oldest} dropped and the cache was rebuilt."


def no_mask(checkpoint: Checkpoint) -> str:
    """The warning for a model that was trained without a mask; empty for any other."""
    return "" if checkpoint.config.causal else NO_MASK
