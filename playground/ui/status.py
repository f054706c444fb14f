"""/status: how full the server is, as JSON for its owner: numbers only, nothing about a visitor."""

from __future__ import annotations

import threading

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from .. import kept
from .gradio_fixes.first_script import STARTED

PATH = "/status"


def status_route(blocks: gr.Blocks) -> Route:
    """The route that reports the server's status."""

    def answer(request: Request) -> JSONResponse:
        sessions = len(request.app.state_holder.session_data)
        headers = {"cache-control": "no-store", "x-playground-server": STARTED}
        return JSONResponse(counts(blocks, sessions), headers=headers)

    return Route(PATH, answer)


def counts(blocks: gr.Blocks, sessions: int) -> dict[str, dict[str, int]]:
    """The present counts; sizes in bytes."""
    page = blocks.page
    return {
        "jobs": page.board.counts(),
        "models": page.registry.counts(),
        "caches": kept.counts(),
        "page": {
            "sessions": sessions,
            "queued": len(blocks._queue),
            "threads": threading.active_count(),
        },
        "uploads": page.uploads.counts(),
        "limits": {name: int(most) for name, most in vars(page.limits).items() if isinstance(most, (int, float))},
    }
