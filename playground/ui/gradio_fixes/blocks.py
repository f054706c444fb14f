"""Blocks: gradio's Blocks, but that what does nothing costs nothing.

A visitor's run is trained in the same process, so whatever gradio does takes time from it.
"""

from __future__ import annotations

import gradio as gr

from . import small_sessions
from .calm_queue import CalmQueue
from .quiet_refusals import QuietRefusals
from .skipped_outputs import SkippedOutputs

small_sessions.install()


class Blocks(CalmQueue, SkippedOutputs, QuietRefusals, gr.Blocks):
    """The page, with some of gradio's habits mended."""
