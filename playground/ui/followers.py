"""Followers: what each open page has been sent already, so that a look at a run sends only what is new."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import gradio as gr

from ..service.limits import PAGES
from .chart import Feed
from .theme import duration

# seconds between looks at what has not taken its first step, at what soon ends, and at what goes on for a while
FIRST_TICK, TICK, SLOW_TICK = 0.2, 0.4, 1.5
WAIT_TICK, IDLE_TICK = 3.0, 10.0  # of those in line, and while nothing goes on: another page may begin something
LONG = 15.0  # seconds left that make the difference


class View(Protocol):
    """What can be followed: something with an id that changes from one version to the next."""

    id: str
    version: int


@dataclass
class Follower:
    """One open page."""

    feed: Feed = field(default_factory=Feed)
    second: Feed = field(default_factory=Feed)
    """Of a second chart, where there is one."""
    run_id: str | None = None
    version: int = -1
    following: str | None = None
    """The job whose end is waited for."""
    elsewhere: bool = False
    """Whether another tab than that of these jobs was open when it was last asked."""
    made: str | None = None
    """The model that a job brought forth meanwhile, as long as it is not chosen."""
    asked: bool = False
    """Whether the page was asked to choose it."""
    news: Any = None
    """What `Board.news` said at the last look."""
    sent: dict[Hashable, Any] = field(default_factory=dict)

    def only_new(
        self, parts: Mapping[Hashable, tuple[Any, Callable[[], Any]]], view: View, *, whole: bool
    ) -> dict[Hashable, Any]:
        """Make the parts whose dependencies changed since they were sent (all of them if `whole`).

        Args:
            parts: component → (what it depends on, how to make it).
        """
        whole = whole or self.run_id != view.id
        new = {key: part for key, part in parts.items() if whole or self.sent.get(key, _NOTHING) != part[0]}
        self.sent.update({key: depends_on for key, (depends_on, _) in new.items()})
        self.run_id, self.version = view.id, view.version
        return {key: make() for key, (_, make) in new.items()}


def tick(time_left: float | None, *, waits: bool = False) -> float:
    """Seconds until the next look at work that has so many seconds left: each look takes time from the training.

    None is work that has not begun: its first point is waited for, but not by those who still stand in line.
    """
    if waits:
        return WAIT_TICK
    if time_left is None:
        return FIRST_TICK
    return SLOW_TICK if time_left > LONG else TICK


def in_line(view: Any) -> str:
    """Where a job that waits stands, and for how long, as a sentence."""
    if view.place is None:
        return "Waiting for a place …"
    wait = f"in about {duration(view.wait)}" if view.wait and view.wait >= 1 else "in a moment"
    return (
        f"You are {ordinal(view.place)} in line for a place to train; yours begins {wait}. "
        "Your place is kept as long as this page is open."
    )


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd …"""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


class Followers:
    """The latest pages by their session, the least recently seen out first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, Follower] = OrderedDict()

    def of(self, request: gr.Request) -> Follower:
        """The follower of this page."""
        with self._lock:
            session = request.session_hash or ""
            follower = self._pages.setdefault(session, Follower())
            self._pages.move_to_end(session)
            while len(self._pages) > PAGES:
                self._pages.popitem(last=False)
            return follower

    def fresh(self, request: gr.Request) -> Follower:
        """The follower of this page, as if nothing had been sent."""
        with self._lock:
            self._pages.pop(request.session_hash or "", None)
        return self.of(request)


_NOTHING = object()
