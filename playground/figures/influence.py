"""Predicted against actual effects of removing passages."""

from __future__ import annotations

from collections.abc import Sequence

from . import palette
from .shapes import Figure, axis, figure, numbers, rule


def effects(predicted: Sequence[float], actual: Sequence[float]) -> Figure:
    """Scatter plot of some sets of passages: predicted influence, which has no unit, and effect in nats."""
    most = max(predicted)
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": numbers([each / most for each in predicted]),
        "y": numbers(actual),
        "marker": {"color": palette.DENSE, "size": 9},
        "hovertemplate": "predicted %{x:.2f}<br>actual %{y:.2f} nats<extra></extra>",
    }
    margin = {"l": 56, "r": 12, "t": 12, "b": 44}
    along = axis("predicted influence, largest of all = 1", rangemode="tozero")
    return figure([points], 240, margin=margin, xaxis=along, yaxis=axis("actual effect, nats"), shapes=[rule(y=0.0)])
