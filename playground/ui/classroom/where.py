"""Where: from which address a request comes, and which one it was sent to."""

from __future__ import annotations

import os

import gradio as gr


def address_of(request: gr.Request | None) -> str:
    """From where a request comes, to bound how often codes are guessed; behind a Space's proxy it says so itself."""
    try:
        if os.environ.get("SPACE_ID") and request.headers.get("x-forwarded-for"):
            return request.headers["x-forwarded-for"].split(",")[0].strip()[:60]
        return request.client.host if request.client else ""
    except AttributeError:
        return ""


def is_loopback(request: gr.Request) -> bool:
    """Whether the page was opened at an address that no other machine can reach."""
    try:
        return request.headers.get("host", "").rsplit(":", 1)[0].strip("[]") in ("127.0.0.1", "localhost", "::1")
    except AttributeError:
        return False
