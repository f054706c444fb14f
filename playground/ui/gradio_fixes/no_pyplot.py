"""Gradio imports pyplot around every handler, in case it draws with it (gradio 6.31). No handler here does.

The import costs the first visitor half a second, and the server twenty megabytes.
"""

from __future__ import annotations

import contextlib

from gradio import utils

PLAIN = utils.MatplotlibBackendMananger
"""As gradio has it."""


def install() -> None:
    """Handlers run as they are from now on."""
    utils.MatplotlibBackendMananger = contextlib.nullcontext
