"""Gradio hangs a loading sign on all that a script of the page changes (6.31). A script answers at once: no sign."""

from __future__ import annotations

from typing import Any

import gradio as gr


class NoSign(gr.Blocks):
    """Blocks whose scripts have no loading sign."""

    def __exit__(self, *raised: Any) -> None:
        """The layout is complete."""
        for handler in self.fns.values():
            if handler.fn is None and handler.show_progress_on is None:
                handler.show_progress, handler.show_progress_on = "hidden", []
        super().__exit__(*raised)
