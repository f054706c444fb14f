"""Gradio prints a traceback for whatever a caller sends that a component does not take.

Nobody's page sends such things, but programs that try doors do, hundreds a minute, and what is wrong with the server
itself drowns among them (gradio 6.31). Here a refusal is one line in the log, and a sentence to whoever asked. Half a
character (a lone surrogate) is refused as well: gradio takes it in, and fails to send it back.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

import gradio as gr

LOG = logging.getLogger("playground.refused")
LONGEST = 120
"""Characters of a reason in the log."""


class QuietRefusals(gr.Blocks):
    """Blocks that refuse in a sentence."""

    async def preprocess_data(self, block_fn: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
        """What the handler gets of what was sent."""
        try:
            _check_characters(inputs)
            return await super().preprocess_data(block_fn, inputs, *arguments, **named)
        except Exception as problem:
            raise _refused(block_fn, problem) from None

    async def call_function(self, block_fn: Any, *arguments: Any, **named: Any) -> Any:
        """The handler's answer; gradio reads the event just before the call, and refuses it there."""
        try:
            return await super().call_function(block_fn, *arguments, **named)
        except Exception as problem:
            if any(frame.name == "special_args" for frame in traceback.extract_tb(problem.__traceback__)):
                raise _refused(block_fn, problem) from None
            raise


def _check_characters(value: Any) -> None:
    """Raises ValueError where a text, however deep, could not be sent on."""
    if isinstance(value, str):
        if not value.isascii():
            value.encode()
    elif isinstance(value, (list, tuple)):
        for each in value:
            _check_characters(each)
    elif isinstance(value, dict):
        _check_characters([*value, *value.values()])


def _refused(block_fn: Any, problem: Exception) -> gr.Error:
    reason = " ".join(str(problem).split())
    LOG.warning("refused for %s: %s: %.*s", block_fn.api_name, type(problem).__name__, LONGEST, ascii(reason))
    if isinstance(problem, gr.Error) and len(reason) <= LONGEST:
        return gr.Error(reason, print_exception=False)
    return gr.Error(
        "This was sent something that the page never sends. Reload the page and try again.", print_exception=False
    )
