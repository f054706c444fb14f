"""Own files: the page's scripts, styles and plotly.js, each at an address that changes with its content.

So a browser fetches each file once. Gradio's own address would tell every visitor its path on this machine.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..kept import Kept

ASSETS, FRONT = Path(__file__).parent / "assets", Path(__file__).parent / "front"
PLOTLY_JS = ASSETS / "vendor" / "plotly-cartesian.min.js"
"""plotly.js 4.1.1 with only the charts that we draw (npm's plotly.js-cartesian-dist-min): a third of the full file in
the Python package."""
FOR_GOOD, ASK_AGAIN = "public, max-age=31536000, immutable", "no-cache"


@dataclass(frozen=True)
class Body:
    """A response body, with its compressed form."""

    content: bytes
    media_type: str
    packed: bytes
    version: str
    """A tag that differs for different content."""

    @classmethod
    def of(cls, content: bytes, media_type: str) -> Body:
        """The body with this content."""
        return cls(content, media_type, gzip.compress(content, 6), hashlib.blake2b(content, digest_size=9).hexdigest())

    def answer(self, asked: Headers, caching: str) -> Response:
        """The response to a request with these headers; `caching` is its Cache-Control."""
        tag = f'W/"{self.version}"'
        headers = {"etag": tag, "cache-control": caching, "vary": "Accept-Encoding"}
        if tag in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" not in asked.get("accept-encoding", ""):
            return Response(self.content, media_type=self.media_type, headers=headers)
        return Response(self.packed, media_type=self.media_type, headers=headers | {"content-encoding": "gzip"})


_files: dict[str, Path] = {}
_bodies = Kept(entries=64, megabytes=64)


def served_path(path: Path) -> str:
    """The path of this file, relative to the page's own address."""
    name = f"{path.parent.name}/{path.name}"
    _files[name] = path
    return f"ours/{name}?v={_body(path).version}"


def files_route() -> Route:
    """A route to pass in gradio's `app_kwargs`: it serves the files named by `served_path`, and nothing else."""

    def answer(request: Request) -> Response:
        path = _files.get(request.path_params["name"])
        if path is None:
            return Response("Not found", 404)
        body = _body(path)
        return body.answer(request.headers, FOR_GOOD if request.query_params.get("v") == body.version else ASK_AGAIN)

    return Route("/ours/{name:path}", answer)


def _body(path: Path) -> Body:
    """The file's present content, so that an edit needs no restart of the server."""
    stat = path.stat()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    key = path, stat.st_mtime_ns, stat.st_size
    return _bodies.get(key, lambda: Body.of(path.read_bytes(), kind))
