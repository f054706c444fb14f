"""Gradio imports pyplot around every handler, lest one draws with it: half a second of the first visitor's time, and
twenty megabytes (gradio 6.31). No handler here does.
"""

from __future__ import annotations

import contextlib

from gradio import utils

PLAIN = utils.MatplotlibBackendMananger
"""As gradio has it."""


def install() -> None:
    """Handlers run as they are from now on."""
    utils.MatplotlibBackendMananger = contextlib.nullcontext
