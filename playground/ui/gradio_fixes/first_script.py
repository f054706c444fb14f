"""The page as it is served: our scripts before gradio's own, made once for all visitors, and compressed (gradio 6.31).

Gradio adds what it calls `head` only once its own scripts run. That is too late for clock.js and complaints.js, which
stand between gradio and the browser from the start, and for page.js, which has to see texts before anything takes them.
The browser is also told to fetch plotly.js at once. Gradio builds the page again for every visitor: 390 KB in 12 ms.
Built once and compressed, it has 57 KB.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware import Middleware

from ...kept import Kept
from ..own_files import ASK_AGAIN, ASSETS, FRONT, PLOTLY_JS, Body, served_path
from ..where import path_within

Message = dict[str, Any]
_SAY_WHERE = (b"host", b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server")
"""The headers from which gradio makes the address that is in the page."""
STARTED = secrets.token_hex(8)
"""What tells this start of the server from others."""
SCRIPTS = (
    FRONT / "clock.js",
    ASSETS / "complaints.js",
    *(
        FRONT / f"{name}.js"
        for name in ("page", "newest", "address", "why", "writing", "game", "deeds", "panel", "news", "form", "class")
    ),
)


def scripts_first(*, lasting: bool) -> Middleware:
    """Starlette middleware to pass in gradio's `app_kwargs`. `lasting`: whether visitors' work outlives this server.

    The page carries a mark of this start of the server, so that it notices a restart.
    """
    started = f'<meta name="playground-server" content="{STARTED}" data-lasting="{"yes" if lasting else ""}">'
    tags = started + "".join(f'<script src="{served_path(path)}"></script>' for path in SCRIPTS)
    tags += f'<link rel="preload" as="script" href="{served_path(PLOTLY_JS)}">'
    return Middleware(_ScriptsFirst, tags=tags.encode())


class _ScriptsFirst:
    """Changes the page; all other requests go by untouched."""

    def __init__(self, app: Callable[..., Awaitable[None]], tags: bytes):
        self.app, self.tags, self._made = app, tags, Kept(entries=8, megabytes=32)

    async def __call__(self, scope: Message, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or path_within(scope).strip("/"):
            return await self.app(scope, receive, send)
        headers = [(name, value) for name, value in scope["headers"] if name in _SAY_WHERE]
        key = scope["scheme"], scope.get("root_path", ""), *headers
        body = self._made.peek(key)
        if body is None:
            messages: list[Message] = []

            async def hold(message: Message) -> None:
                messages.append(message)

            await self.app({**scope, "query_string": b"", "headers": headers}, receive, hold)
            assert messages[0]["status"] == 200, "an error must not be kept"
            page = b"".join(message.get("body", b"") for message in messages[1:])
            page = page.replace(b"<head>", b"<head>" + self.tags, 1)
            body = self._made.get(key, lambda: Body.of(page, "text/html; charset=utf-8"))
        await body.answer(Headers(scope=scope), ASK_AGAIN)(scope, receive, send)
