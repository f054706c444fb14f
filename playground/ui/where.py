"""Where: from which address a request comes, and whether it was sent to this very machine."""

from __future__ import annotations

import ipaddress
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


def asked_here(request: gr.Request) -> bool:
    """Whether the page was opened at an address that no other machine can reach."""
    try:
        return is_loopback(request.headers.get("host", "").rsplit(":", 1)[0].strip("[]"))
    except AttributeError:
        return False


def at_home(request: gr.Request) -> bool:
    """Whether a request comes from a browser on this very machine, so that its stored login may be used.

    A page may be open to a network or shared through a tunnel; then the address asked for is another one.
    """
    if os.environ.get("SPACE_ID") or request.headers.get("x-forwarded-for"):
        return False
    return asked_here(request) and is_loopback(request.client.host if request.client else "")


def is_loopback(host: str) -> bool:
    """Whether a name or number of a machine is this one's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
