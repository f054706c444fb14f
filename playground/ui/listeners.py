"""Listeners: which programs wait for the answers of a call, as their open streams show.

A program has a stream of answers open as long as it listens. A middleware counts these by gradio's session, or by the
event if a program names no session. A program that only sends requests does not count.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.middleware import Middleware

_DATA, _CALL = "/gradio_api/queue/data", "/gradio_api/call/"


class Listeners:
    """The sessions with open streams. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: Counter[str] = Counter()

    def __contains__(self, session: str | None) -> bool:
        return session in self._streams

    def middleware(self) -> Middleware:
        """Starlette middleware to pass in gradio's `app_kwargs`."""
        return Middleware(_Watching, listeners=self)

    def count(self, session: str, change: int) -> None:
        """A stream of this session was opened (1) or closed (-1)."""
        with self._lock:
            self._streams[session] += change
            if self._streams[session] <= 0:
                del self._streams[session]


class _Watching:
    """Counts the streams that are open."""

    def __init__(self, app: Callable[..., Awaitable[None]], listeners: Listeners):
        self.app, self.listeners = app, listeners

    async def __call__(self, scope: dict[str, Any], receive: Callable, send: Callable) -> None:
        session = _listening(scope)
        if session is None:
            return await self.app(scope, receive, send)
        self.listeners.count(session, 1)
        try:
            await self.app(scope, receive, send)
        finally:
            self.listeners.count(session, -1)


def _listening(scope: dict[str, Any]) -> str | None:
    """The session whose answers a request waits for; None for any other request."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return None
    path = scope["path"][max(scope["path"].find("/gradio_api/"), 0) :]  # perhaps behind a prefix
    if path.startswith(_DATA):
        return parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[0]
    return path.rstrip("/").rsplit("/", 1)[-1] if path.startswith(_CALL) else None
