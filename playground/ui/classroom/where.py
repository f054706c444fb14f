"""Where: from which address a request comes."""

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
