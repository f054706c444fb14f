"""Blocks: gradio's Blocks, in which skipped outputs cost nothing and errors end in a sentence.

A visitor's run is trained in the same process, so whatever gradio does takes time from it.
"""

from __future__ import annotations

import copy
from typing import Any

import gradio as gr
from gradio import state_holder

from .calm_queue import CalmQueue
from .quiet_refusals import QuietRefusals
from .small_sessions import Session

state_holder.SessionState = Session  # by this name gradio makes them from now on


class Blocks(CalmQueue, QuietRefusals, gr.Blocks):
    """The page, with some of gradio's habits mended."""

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: Any = None) -> list[Any]:
        """What goes to the page for a handler's outputs, in their order.

        Gradio makes a new component, for the session to keep, of every output that a dictionary leaves out: 0.2 ms and
        two kilobytes each (6.31), and a lesson's answer has a hundred. Here it sees only those that were given a value.
        """
        values = {} if predictions == gr.skip() else predictions
        # each once: gradio would take the value out of an update that it reads a second time
        given = [output for output in dict.fromkeys(block_fn.outputs) if isinstance(values, dict) and output in values]
        if len(block_fn.outputs) < 2 or not isinstance(values, dict) or len(given) < len(values):
            return await super().postprocess_data(block_fn, predictions, state)
        only = copy.copy(block_fn)
        only.outputs = given
        of_given = [values[output] for output in given]
        made = await super().postprocess_data(only, of_given if len(given) != 1 else of_given[0], state)
        sent = dict(zip(given, made))
        return [sent.pop(output, gr.skip()) for output in block_fn.outputs]
