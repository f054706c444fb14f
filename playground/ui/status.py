"""/status: how full the house is, as JSON for whoever runs it: numbers only, nothing of a visitor."""

from __future__ import annotations

import contextlib
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
from gradio.utils import get_upload_folder
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from .. import kept
from .gradio_fixes.first_script import STARTED

PATH = "/status"


def status_route(blocks: gr.Blocks) -> Route:
    """The route that answers for this page."""

    def answer(request: Request) -> JSONResponse:
        sessions = len(request.app.state_holder.session_data)
        headers = {"cache-control": "no-store", "x-playground-server": STARTED}
        return JSONResponse(counts(blocks, sessions), headers=headers)

    return Route(PATH, answer)


def counts(blocks: gr.Blocks, sessions: int) -> dict[str, dict[str, int]]:
    """What there is now; sizes in bytes. Gradio's upload folder holds downloads as well."""
    page = blocks.page
    folder = list(_sizes(Path(get_upload_folder())))
    return {
        "jobs": page.board.counts(),
        "models": page.registry.counts(),
        "caches": kept.counts(),
        "page": {
            "sessions": sessions,
            "queued": len(blocks._queue),
            "threads": threading.active_count(),
            "uploads": len(folder),
            "upload_bytes": sum(folder),
        },
        "uploads": page.uploads.counts(),
        "limits": {name: int(most) for name, most in vars(page.limits).items() if isinstance(most, (int, float))},
    }


def _sizes(folder: Path) -> Iterator[int]:
    """The sizes of all files in a folder, from which some may be going right now."""
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                yield found.st_size
