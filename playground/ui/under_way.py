"""Under way: what a tab shows of its jobs besides results: the bar in place of the button, and failures."""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from typing import Any

from ..service.job import Job
from . import theme
from .page import Page
from .panel import Asked, Shown, Slot, deed_button, slot
from .refusals import sentence

UNSAVED = (
    "Not saved yet: {}. You can continue, but download anything you want to keep. "
    "The page saves everything as soon as it can."
)
TWICE = 1.0
"""Seconds within which a second press of a button is a double click."""
# seconds between checks of a job: before its first step, in its last seconds, and at most
FIRST_TICK, TICK, SLOW_TICK = 0.2, 0.4, 2.0
WAIT_TICK = 3.0  # for jobs in the queue
_BAR = f"""{slot("bar")}{slot("stop")}{slot("problem", tag="p", class_="notice notice-error", role="alert")}"""


def add_bar(page: Page, kind: type[Job], draw: Callable[[Any], str], *, elem_id: str, stop_id: str) -> None:
    """Add the panel that replaces a job's start button while it runs, with its buttons; `draw(view)` gives the bar."""

    def show(asked: Asked) -> Shown:
        job = page.board.active(asked.visitor, kind=kind)
        if job is None:
            return Shown({}, {name: Slot(None, lambda: "") for name in ("stop", "bar")})
        view = job.view()
        stop = stop_button(view, kind, id=stop_id)
        return Shown({}, {"stop": Slot(stop, lambda: stop), "bar": Slot(view.version, lambda: draw(view))})

    page.panels.add(elem_id, show, _BAR, start={}, follows=True, elem_id=elem_id, elem_classes="job-bar")
    page.panels.act(f"stop_{kind.kind}", lambda asked: page.board.stop(asked.visitor, kind=kind) and None)
    page.panels.act(f"dismiss_{kind.kind}", lambda asked: page.board.dismiss(asked.visitor, kind=kind))


def stop_button(view: Any, kind: type[Job], **more: str) -> str:
    """The button that stops a job of this kind, with `more` attributes."""
    words = {"waiting": "Leave the queue", "stopping": "Stopping …"}.get(view.state, "Stop")
    return deed_button(words, f"stop_{kind.kind}", kind="stop", disabled=view.state == "stopping", **more)


def progress(view: Any, share: float, words: str) -> str:
    """The progress bar of a run or a pair: `words` while it trains, otherwise why it waits."""
    if view.state == "waiting":
        wait = f" · {theme.about(view.wait)}" if view.wait and view.wait >= 1 else ""
        return theme.progress(0.0, f"{ordinal(view.place or 1)} in the queue{wait}")
    if view.state == "training":
        return theme.progress(share, words)
    return theme.progress(share, view.message or "Getting ready …")


def left(seconds: float | None) -> str:
    """How long a job still takes, worded to follow other words."""
    return f" · {theme.about(seconds)} left" if seconds else ""


def just_begun(page: Page, visitor: str, job: type[Job]) -> bool:
    """Whether this press of a button is the second of a double click."""
    going = page.board.active(visitor, kind=job)
    return going is not None and time.monotonic() - going.began < TWICE


def notices(page: Page, visitor: str, kind: type[Job], shown: str = "") -> Slot:
    """Why the last job failed, unless that is `shown` anyway; and what cannot be saved."""
    failed = page.board.failed(visitor, kind=kind)
    failed = None if failed is None or failed.id == shown else failed
    problem = page.registry.data.problem if page.board.of(visitor, kind=Job) else ""

    def make() -> str:
        parts = []
        if failed is not None:
            why = html.escape(sentence(failed.message))
            close = deed_button("×", f"dismiss_{kind.kind}", kind="link", title="Dismiss")
            said = f'<span><b dir="auto">{html.escape(failed.name)}</b>: {why}</span>{close}'
            parts.append(f'<div class="notice notice-error failed" role="alert">{said}</div>')
        if problem:
            parts.append(theme.notice(UNSAVED.format(problem), "warning"))
        return "".join(parts)

    return Slot((failed and (failed.id, failed.version), problem), make)


def tick(time_left: float | None, *, waits: bool = False) -> float:
    """Seconds until the page next checks a job with `time_left` seconds to go. Each check takes time from training.

    `time_left` is None before the first step: the page then checks often, unless the job `waits` in the queue.
    """
    if waits:
        return WAIT_TICK
    if time_left is None:
        return FIRST_TICK
    return min(max(time_left / 5, TICK), SLOW_TICK)


def ordinal(number: int) -> str:
    """First, second … fifth, then 6th, 7th …"""
    if number <= 5:
        return ("First", "Second", "Third", "Fourth", "Fifth")[number - 1]
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
