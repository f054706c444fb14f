"""Corpora: why validation losses on a text may mean little."""

from __future__ import annotations

from ..data.overlap import MUCH, NEARLY_ALL

REMEDY = "Paste more text, or a text that repeats itself less."


def overlap_warning(share: float) -> str:
    """The warning for a text whose validation part repeats this share of the training part."""
    if share < MUCH:
        return ""
    shows = f" A low validation loss would only show a good memory. {REMEDY}" if share < NEARLY_ALL else ""
    return f"{100 * share:.0f} % of the validation text also occurs in the training text.{shows}"
