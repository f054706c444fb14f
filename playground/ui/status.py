"""/status: how full the server is, as JSON for its owner: numbers only, nothing about a visitor."""

from __future__ import annotations

import threading

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from .. import kept
from .gradio_fixes.first_script import STARTED


def status_route(blocks: gr.Blocks) -> Route:
    """The route that reports the present counts; sizes in bytes."""

    def answer(request: Request) -> JSONResponse:
        page = blocks.page
        counts = {
            "jobs": page.board.counts(),
            "models": page.registry.counts(),
            "caches": kept.counts(),
            "page": {
                "sessions": len(request.app.state_holder.session_data),
                "queued": len(blocks._queue),
                "threads": threading.active_count(),
            },
            "uploads": page.uploads.counts(),
            "limits": {name: int(most) for name, most in vars(page.limits).items() if isinstance(most, (int, float))},
        }
        return JSONResponse(counts, headers={"cache-control": "no-store", "x-playground-server": STARTED})

    return Route("/status", answer)
