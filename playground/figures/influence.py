"""Predicted against actual effects of removing passages, one point per proof."""

from __future__ import annotations

from collections.abc import Sequence

from . import palette
from .shapes import Figure, axis, figure, numbers, rule


def effects(predicted: Sequence[float], actual: Sequence[float]) -> Figure:
    """Scatter plot, one point per proof: predicted influence (its own units), and the passages' effect in nats."""
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": numbers(predicted),
        "y": numbers(actual),
        "marker": {"color": palette.DENSE, "size": 9},
        "hovertemplate": "predicted %{x:.3g}<br>actual %{y:.2f} nats<extra></extra>",
    }
    margin = {"l": 56, "r": 12, "t": 12, "b": 44}
    return figure([points], 240, margin=margin, xaxis=axis("predicted influence"), yaxis=axis("actual effect, nats"),
                  shapes=[rule(y=0.0)])  # fmt: skip
