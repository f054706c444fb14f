"""Blocks: gradio's Blocks, with a calm queue, whose errors end in a sentence."""

from __future__ import annotations

from .calm_queue import CalmQueue
from .quiet_refusals import QuietRefusals


class Blocks(CalmQueue, QuietRefusals):
    """The page, with some of gradio's habits mended."""
