"""Small curves without axes for stat cards: learning rate, tokens per second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def sparkline(
    values: Sequence[float], x: Sequence[float] | None = None, *, name: str = "", unit: str = "", height: int = 56
) -> dict[str, Any]:
    """One line with its last point marked; hover gives the value with `unit`."""
    raise NotImplementedError


def describe_sparkline(values: Sequence[float], name: str, unit: str = "") -> str:
    """Last value, and its range so far."""
    raise NotImplementedError
