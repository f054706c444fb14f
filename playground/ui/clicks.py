"""Clicks: what a click's event says, which anybody may have written, as numbers that fit what was drawn.

A handler takes `event: gr.EventData`, whose making asks nothing of what was sent (that of gr.SelectData does), and a
panel's view a mapping:

    def clicked(event: gr.EventData):
        with in_words():                                   # a ValueError is one sentence on the page
            row, column = cell_of(event, rows=T, columns=T)
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import gradio as gr

Click = gr.EventData | Mapping[str, Any]


def cell_of(event: Click, *, rows: int, columns: int) -> tuple[int, int]:
    """Row and column that were clicked, in what has so many. Raises ValueError for any other."""
    place = _said(event, "index")
    if not isinstance(place, (list, tuple)) or len(place) != 2:
        raise ValueError(_NOWHERE)
    return _within(place[0], rows), _within(place[1], columns)


def index_of(event: Click, count: int) -> int:
    """Which of so many things in a row was clicked: its index, or the second number of two. Raises ValueError."""
    place = _said(event, "index")
    if isinstance(place, (list, tuple)) and len(place) == 2:
        _within(place[0], sys.maxsize)
        place = place[1]
    return _within(place, count)


def trace_of(event: Click, count: int) -> int:
    """Which of a chart's so many traces was clicked. Raises ValueError."""
    return _within(_said(event, "trace"), count)


def number_of(event: Click, name: str) -> float:
    """A finite number that the event calls so, such as a curve's `x`. Raises ValueError."""
    value = _said(event, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < sys.float_info.max:
        raise ValueError(_NOWHERE)
    return float(value)


_NOWHERE = "This click is not on the picture. Click again"


def _said(event: Click, name: str) -> Any:
    # attributes of an event would look here, too, and fall over what is no dictionary
    said = event._data if isinstance(event, gr.EventData) else event
    return said.get(name) if isinstance(said, dict) else None


def _within(value: Any, count: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < count or value != int(value):
        raise ValueError(_NOWHERE)
    return int(value)
