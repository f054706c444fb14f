"""Small curves without axes for stat cards: learning rate, tokens per second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import palette
from .wire import axis, escaped, layout, numbers


def sparkline(
    values: Sequence[float], x: Sequence[float] | None = None, *, name: str = "", unit: str = "", height: int = 56
) -> dict[str, Any]:
    """One line; hover gives the value with `unit`. `x` defaults to 0, 1, 2 …"""
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": numbers(range(len(values)) if x is None else x),
        "y": numbers(values),
        "line": {"color": palette.DENSE, "width": 1.8},
        "hovertemplate": f"{escaped(name)} %{{y:.4~g}} {escaped(unit)} at %{{x:,.0f}}<extra></extra>",
    }
    hidden = axis(showgrid=False, showticklabels=False, fixedrange=True)
    return {
        "data": [line],
        "layout": layout(
            height,
            margin={"l": 2, "r": 2, "t": 4, "b": 4},
            xaxis=hidden,
            yaxis={**hidden, "rangemode": "tozero"},
            uirevision=name,
        ),
    }


def describe_sparkline(values: Sequence[float], name: str, unit: str = "") -> str:
    """Last value, and its range so far."""
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return f"{name}: nothing measured yet."
    unit = f" {unit}" if unit else ""
    return f"{name}: {finite[-1]:.4g}{unit} now, between {min(finite):.4g} and {max(finite):.4g} so far."
