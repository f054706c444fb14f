"""Gradio prints a traceback for whatever a caller sends that a component does not take.

Nobody's page sends such things, but programs that try doors do, hundreds a minute, and what is wrong with the server
itself drowns among them (gradio 6.31). Here a refusal is one line in the log, and a sentence to whoever asked. What
gradio takes in and fails to send back is refused as well: half a character (a lone surrogate), an integer of more than
64 bits, lists nested too deeply. A handler's error keeps its traceback in the log, and whoever asked gets a sentence;
gradio alone would send an error without a word.
"""

from __future__ import annotations

import logging
import math
import traceback
from typing import Any

import gradio as gr

from ...service.data_folder import disk_problem

LOG = logging.getLogger("playground.refused")
LONGEST = 120
"""Characters of a reason in the log."""
DEEPEST = 100
"""Lists within lists; the JSON that is sent back may have 254."""
OURS = "Something went wrong on our side: try again in a moment."
DISK = "{}, so this could not be done. Your models are still here: try again later."
STRANGE = "Something went wrong. Reload the page and try again."


def disk_refusal(problem: Exception) -> str:
    """The error message for a disk that cannot be written; empty for any other problem."""
    words = disk_problem(problem) if isinstance(problem, OSError) else ""
    return DISK.format(words[:1].upper() + words[1:]) if words else ""


class QuietRefusals(gr.Blocks):
    """Blocks whose errors are sentences for the visitor."""

    async def process_api(self, block_fn: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
        """As in gradio, with errors turned into sentences, and logged if the fault is ours."""
        try:
            check_sendable([inputs, getattr(named.get("event_data"), "_data", None)])
            return await super().process_api(block_fn, inputs, *arguments, **named)
        except Exception as problem:
            if _READING & {frame.name for frame in traceback.extract_tb(problem.__traceback__)}:
                raise _refused(block_fn, problem) from None
            if isinstance(problem, gr.Error):
                raise
            if said := disk_refusal(problem):
                LOG.warning("%s could not write: %s", block_fn.api_name, problem)
                raise gr.Error(said, print_exception=False) from problem
            LOG.exception("an error of our own in %s", block_fn.api_name)
            raise gr.Error(OURS, print_exception=False) from problem


_READING = {"check_sendable", "preprocess_data", "special_args"}
"""What reads what was sent, here and in gradio, which reads an event just before it calls the handler."""


def check_sendable(value: Any, depth: int = 0) -> None:
    """Raises ValueError where a value, however deep, could not be sent on."""
    if isinstance(value, str):
        if not value.isascii():
            value.encode()
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError("an integer of more than 64 bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number that is not finite")
    elif isinstance(value, (list, tuple, dict)):
        if depth > DEEPEST:
            raise ValueError("lists nested too deeply")
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            check_sendable(each, depth + 1)


def _refused(block_fn: Any, problem: Exception) -> gr.Error:
    reason = " ".join(str(problem).split())
    LOG.warning("refused for %s: %s: %.*s", block_fn.api_name, type(problem).__name__, LONGEST, ascii(reason))
    if isinstance(problem, gr.Error) and len(reason) <= LONGEST:
        return gr.Error(reason, print_exception=False)
    return gr.Error(STRANGE, print_exception=False)
