"""Presence: which visitors have opened a page, and which programs listen to the answers of a call.

A page says who its visitor is when it is loaded, and looks at its jobs now and then, which `Board` counts as a sign of
life. A program has a stream of answers open as long as it listens: a middleware counts these by gradio's session, or by
the event where a program names none. Whoever only sends requests is not there.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.middleware import Middleware

from ..service.limits import PAGES

_DATA, _CALL = "/gradio_api/queue/data", "/gradio_api/call/"


class Presence:
    """Who is there. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: Counter[str] = Counter()
        self._pages: OrderedDict[str, None] = OrderedDict()  # their visitors, the latest last

    def middleware(self) -> Middleware:
        """For the `middleware` of gradio's `app_kwargs`."""
        return Middleware(_Watching, presence=self)

    def opened(self, visitor: str) -> None:
        """A page was loaded."""
        with self._lock:
            self._pages[visitor] = None
            self._pages.move_to_end(visitor)
            while len(self._pages) > PAGES:
                self._pages.popitem(last=False)

    def is_page(self, visitor: str) -> bool:
        """Whether this visitor has opened a page."""
        return visitor in self._pages

    def listens(self, session: str | None) -> bool:
        """Whether somebody waits for the answers of this session."""
        return session in self._listeners

    def count(self, session: str, change: int) -> None:
        """A stream of this session was opened (1) or closed (-1)."""
        with self._lock:
            self._listeners[session] += change
            if self._listeners[session] <= 0:
                del self._listeners[session]


class _Watching:
    """Counts the streams that are open."""

    def __init__(self, app: Callable[..., Awaitable[None]], presence: Presence):
        self.app, self.presence = app, presence

    async def __call__(self, scope: dict[str, Any], receive: Callable, send: Callable) -> None:
        session = _listening(scope)
        if session is None:
            return await self.app(scope, receive, send)
        self.presence.count(session, 1)
        try:
            await self.app(scope, receive, send)
        finally:
            self.presence.count(session, -1)


def _listening(scope: dict[str, Any]) -> str | None:
    """The session whose answers a request waits for; None for any other request."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return None
    path = scope["path"][max(scope["path"].find("/gradio_api/"), 0) :]  # behind a prefix perhaps
    if path.startswith(_DATA):
        return parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[0]
    return path.rstrip("/").rsplit("/", 1)[-1] if path.startswith(_CALL) else None
