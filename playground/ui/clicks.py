"""Clicks: a click in a chart, which anybody may have forged, as numbers that fit the drawing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

Click = Mapping[str, Any]


def cell_of(click: Click, *, rows: int, columns: int) -> tuple[int, int]:
    """The row and column clicked in a map of this size. Raises ValueError if they are outside it."""
    place = click.get("index")
    if not isinstance(place, (list, tuple)) or len(place) != 2:
        raise ValueError(_NOWHERE)
    return _within(place[0], rows), _within(place[1], columns)


def index_of(click: Click, count: int) -> int:
    """The index, below `count`, of the thing clicked; of a pair of numbers, the second. Raises ValueError."""
    place = click.get("index")
    return _within(place[1] if isinstance(place, (list, tuple)) and len(place) == 2 else place, count)


def trace_of(click: Click, count: int) -> int:
    """The index, below `count`, of the chart's trace that was clicked. Raises ValueError."""
    return _within(click.get("trace"), count)


def number_of(click: Click, name: str) -> float:
    """The click's finite number of this name, such as a curve's `x`. Raises ValueError."""
    value = click.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < sys.float_info.max:
        raise ValueError(_NOWHERE)
    return float(value)


_NOWHERE = "This click is not on the picture. Click again"


def _within(value: Any, count: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < count or value != int(value):
        raise ValueError(_NOWHERE)
    return int(value)
