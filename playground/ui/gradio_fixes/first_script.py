"""What gradio calls `head` comes only once its own scripts run; here ours stand in the page before them.

complaints.js has to watch what gradio fetches from the first time on, page.js to know of texts before anything can take
them. Beside them the browser is told to fetch plotly.js now, not when gradio has been set up (gradio 6.31).
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.middleware import Middleware

from ..own_files import ASSETS, FRONT, PLOTLY_JS, served_path
from ..where import path_within

Message = dict[str, Any]
STARTED = secrets.token_hex(8)
"""What tells this start of the server from others."""
SCRIPTS = (
    ASSETS / "complaints.js",
    *(
        FRONT / f"{name}.js"
        for name in ("page", "newest", "address", "why", "writing", "game", "deeds", "panel", "news", "form", "class")
    ),
)


def early_head(*, lasting: bool) -> Middleware:
    """For the `middleware` of gradio's `app_kwargs`. `lasting`: whether visitors' work outlives this server.

    The page is told by which start of the server it was made, so that it notices another one.
    """
    started = f'<meta name="playground-server" content="{STARTED}" data-lasting="{"yes" if lasting else ""}">'
    tags = started + "".join(f'<script src="{served_path(path)}"></script>' for path in SCRIPTS)
    tags += f'<link rel="preload" as="script" href="{served_path(PLOTLY_JS)}">'
    return Middleware(_EarlyHead, tags=tags.encode())


class _EarlyHead:
    """Puts tags behind the opening `<head>` of the page itself; all other answers go by untouched."""

    def __init__(self, app: Callable[..., Awaitable[None]], tags: bytes):
        self.app, self.tags = app, tags

    async def __call__(self, scope: Message, receive: Callable, send: Callable[[Message], Awaitable[None]]) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or path_within(scope).strip("/"):
            return await self.app(scope, receive, send)
        begun: Message = {}

        async def insert(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.update(message)  # held back: its length is about to change
                return
            if begun:
                body = message.get("body", b"")
                more = body.replace(b"<head>", b"<head>" + self.tags, 1)
                headers = [
                    (name, b"%d" % (int(value) + len(more) - len(body)) if name.lower() == b"content-length" else value)
                    for name, value in begun["headers"]
                ]
                message = {**message, "body": more}
                await send({**begun, "headers": headers})
                begun.clear()
            await send(message)

        await self.app(scope, receive, insert)
