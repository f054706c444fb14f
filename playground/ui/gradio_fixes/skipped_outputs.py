"""Gradio makes a new component, for the session to keep, of every output that a handler skips.

That is three milliseconds of the server and some kilobytes of the session's memory per output (gradio 6.31), while a
look at a run changes two of its two dozen outputs. Here gradio sees only the outputs that were given something.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import gradio as gr


class SkippedOutputs(gr.Blocks):
    """Blocks that leave skipped outputs alone."""

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: Any = None) -> list[Any]:
        """What goes to the page for a handler's outputs, in their order."""
        given = _given(block_fn.outputs, predictions)
        if given is None or block_fn.batch or block_fn.is_validator_function:
            return await super().postprocess_data(block_fn, predictions, state)
        data: list[Any] = [gr.skip() for _ in block_fn.outputs]
        if given:
            only = copy.copy(block_fn)
            only.outputs = [block_fn.outputs[index] for index in given]
            values = list(given.values())
            made = await super().postprocess_data(only, values[0] if len(values) == 1 else values, state)
            for index, value in zip(given, made):
                data[index] = value
        return data


def _given(outputs: Sequence[gr.blocks.Block], predictions: Any) -> dict[int, Any] | None:
    """Index of an output → what it was given, for those given anything; None where gradio had better decide."""
    if len(outputs) < 2:
        return None
    if isinstance(predictions, dict):
        if predictions == gr.skip():
            return {}
        index_of = {output._id: index for index, output in enumerate(outputs)}
        if not all(isinstance(key, gr.blocks.Block) and key._id in index_of for key in predictions):
            return None
        pairs = [(index_of[component._id], value) for component, value in predictions.items()]
    elif isinstance(predictions, (list, tuple)) and len(predictions) == len(outputs):
        pairs = list(enumerate(predictions))
    else:
        return None
    return {index: value for index, value in pairs if not (isinstance(value, dict) and value == gr.skip())}
