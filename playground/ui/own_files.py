"""Own files: the page's scripts, styles and plotly.js, each at an address that changes with its content.

So a browser fetches it once. Gradio's own address of a file would tell every visitor where on this machine it lies.
"""

from __future__ import annotations

import mimetypes
from pathlib import Path

import plotly
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..kept import Kept
from .sent import Body

ASSETS, FRONT = Path(__file__).parent / "assets", Path(__file__).parent / "front"
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
FOR_GOOD, ASK_AGAIN = "public, max-age=31536000, immutable", "no-cache"

_files: dict[str, Path] = {}
_bodies = Kept(entries=64, megabytes=64)


def served_path(path: Path) -> str:
    """Where the page finds this file, relative to the page's own address."""
    name = f"{path.parent.name}/{path.name}"
    _files[name] = path
    return f"ours/{name}?v={_body(path).version}"


def files_route() -> Route:
    """For the `routes` of gradio's `app_kwargs`: what `served_path` has named, and nothing else."""

    def answer(request: Request) -> Response:
        path = _files.get(request.path_params["name"])
        if path is None:
            return Response("Not found", 404)
        body = _body(path)
        return body.answer(request.headers, FOR_GOOD if request.query_params.get("v") == body.version else ASK_AGAIN)

    return Route("/ours/{name:path}", answer)


def _body(path: Path) -> Body:
    """The file as it is now: whoever edits it need not start the server again."""
    stat = path.stat()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    key = path, stat.st_mtime_ns, stat.st_size
    return _bodies.get(key, lambda: Body(path.read_bytes(), kind))
