"""How the page looks: the gradio theme, the style sheet, and small pieces of HTML that use it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gradio as gr

CSS_PATH = Path(__file__).parent / "assets" / "page.css"


def theme() -> gr.themes.Base:
    """The product's theme for `launch(theme=…)`: calm greys, one accent, fonts of the visitor's system."""
    raise NotImplementedError


def css() -> str:
    """The style sheet for `launch(css=…)`."""
    return CSS_PATH.read_text(encoding="utf-8")


def stat_cards(cards: Sequence[tuple[str, str, str]]) -> str:
    """A row of stat cards as HTML from (label, value, note); values use tabular figures. Everything is escaped."""
    raise NotImplementedError


def notice(text: str, kind: str = "info") -> str:
    """A quiet box with one sentence; `kind` is info, good, warning or error. Escaped."""
    raise NotImplementedError


def token_chips(tokens: Sequence[str], weights: Sequence[float] | None = None, chosen: int | None = None) -> str:
    """Tokens as small tiles, shaded by `weights` (0 … 1, for example their probability); `chosen` is outlined."""
    raise NotImplementedError
