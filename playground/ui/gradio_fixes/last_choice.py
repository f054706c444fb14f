"""Gradio drops what a visitor chooses while the answer to the choice before is on its way (6.31, all but 'change').

Two lists changed quickly on a busy server, and the page then shows the first choice's answer beside the second choice.
Here what was chosen last is always asked, as gradio does it for 'change'.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

CHOOSING = {"input", "select", "blur", "upload", "clear"}
"""Events that say what is chosen. A button may be pressed once; to read what was chosen twice does no harm."""


class LastChoice(gr.Blocks):
    """Blocks in which the last choice counts."""

    def __exit__(self, *raised: Any) -> None:
        """The layout is complete."""
        for handler in self.fns.values():
            if handler.trigger_mode == "once" and CHOOSING & {event for _, event in handler.targets}:
                handler.trigger_mode = "always_last"
        super().__exit__(*raised)
