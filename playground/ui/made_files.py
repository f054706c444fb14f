"""Files that visitors download. They are served from memory, so that a full disk does not stop anybody."""

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
from ..service.data_folder import disk_problem

MEMORY = Path("/dev/shm")
"""A folder in memory, on systems that have one."""
_files = Kept(entries=32, megabytes=500)


def made(make: Callable[[Path], tuple[Path, str]]) -> tuple[str, str]:
    """A link to the file that `make` writes into an empty folder, and what `make` says. ValueError on a full disk."""
    for parent in (None, MEMORY if MEMORY.is_dir() else None):
        try:
            with tempfile.TemporaryDirectory(prefix="playground-take-", dir=parent) as folder:
                path, words = make(Path(folder))
                return held(path.name, path.read_bytes()), words
        except OSError as failed:
            problem, said = failed, disk_problem(failed)
            if not said:
                raise
    raise ValueError(f"{said[:1].upper()}{said[1:]}, so this file cannot be made now. Try again later.") from problem


def held(name: str, content: bytes) -> str:
    """Keep a file in memory and return its link."""
    token = secrets.token_urlsafe(18)
    _files.get(token, lambda: content)
    return f"made/{token}/{quote(name)}"


def made_route() -> Route:
    """The route that serves these files; a link is known only to those who were given it."""

    def answer(request: Request) -> Response:
        content = _files.peek(request.path_params["token"])
        if content is None:
            return PlainTextResponse("This file is not here any more: make it again.", 404)
        headers = {"content-disposition": "attachment", "cache-control": "no-store"}
        return Response(content, media_type="application/octet-stream", headers=headers)

    return Route("/made/{token}/{name}", answer)
