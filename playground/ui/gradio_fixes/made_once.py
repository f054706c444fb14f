"""Made once: the page and its configuration, which gradio builds again for every visitor and sends uncompressed.

Each time that costs a megabyte and a fifth of a second of the server (gradio 6.31), so a class that arrives together
waits nine seconds. All visitors at one address of the page get the same, so it is made once per address, with what has
to stand first in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware import Middleware

from ...kept import Kept
from ..own_files import ASK_AGAIN
from ..sent import Body
from ..where import path_within

Message = dict[str, Any]
PAGES = ("", "config")
_SAY_WHERE = (b"host", b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server")
"""The headers from which gradio makes the address that stands in the page."""


def made_once(first: bytes) -> Middleware:
    """For the `middleware` of gradio's `app_kwargs`; `first` comes behind the opening `<head>` of the page."""
    return Middleware(_MadeOnce, first=first)


class _MadeOnce:
    """Answers for the page and its configuration; all other requests go by untouched."""

    def __init__(self, app: Callable[..., Awaitable[None]], first: bytes):
        self.app, self.first = app, b"<head>" + first
        self._made = Kept(entries=8, megabytes=32)
        self._making = asyncio.Lock()

    async def __call__(self, scope: Message, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or _page(scope) not in PAGES:
            return await self.app(scope, receive, send)
        where = [(name, value) for name, value in scope["headers"] if name in _SAY_WHERE]
        key = _page(scope), scope["scheme"], scope.get("root_path", ""), *where
        body = self._made.peek(key)
        if body is None:
            async with self._making:
                body = self._made.peek(key)
                if body is None:
                    # what else a request says, such as a query, is for the browser: gradio makes the same page of it
                    plain = {**scope, "method": "GET", "query_string": b"", "headers": where}
                    messages = await self._answer(plain, receive)
                    if messages[0]["status"] != 200:
                        for message in messages:
                            await send(message)
                        return
                    content = b"".join(message.get("body", b"") for message in messages[1:])
                    content = content if _page(scope) else content.replace(b"<head>", self.first, 1)
                    kind = Headers(raw=messages[0]["headers"])["content-type"]
                    body = self._made.get(key, lambda: Body(content, kind))
        answer = await run_in_threadpool(body.answer, Headers(scope=scope), ASK_AGAIN)
        await answer(scope, receive, send)

    async def _answer(self, scope: Message, receive: Callable) -> list[Message]:
        messages: list[Message] = []

        async def hold(message: Message) -> None:
            messages.append(message)

        await self.app(scope, receive, hold)
        return messages


def _page(scope: Message) -> str:
    return path_within(scope).strip("/")
