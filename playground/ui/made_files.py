"""Files that visitors download. They are served from memory, and known only to those who were given the link."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ..kept import Kept

_files = Kept(entries=32, megabytes=500)


def made(make: Callable[[Path], tuple[Path, str]]) -> tuple[str, str]:
    """A link to the file that `make` writes into an empty folder, and what `make` says."""
    with tempfile.TemporaryDirectory(prefix="playground-take-") as folder:
        path, words = make(Path(folder))
        return held(path.name, path.read_bytes()), words


def held(name: str, content: bytes) -> str:
    """Keep a file in memory and return its link."""
    token = secrets.token_urlsafe(18)
    _files.get(token, lambda: content)
    return f"made/{token}/{quote(name)}"


def made_route() -> Route:
    """The route that serves these files."""

    def answer(request: Request) -> Response:
        content = _files.peek(request.path_params["token"])
        if content is None:
            return PlainTextResponse("This file is not here any more: make it again.", 404)
        headers = {"content-disposition": "attachment", "cache-control": "no-store"}
        return Response(content, media_type="application/octet-stream", headers=headers)

    return Route("/made/{token}/{name}", answer)
