"""A sweep's chart: the validation loss of each value, its mean and 95 % interval over the seeds, and every seed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from . import palette
from .shapes import Figure, axis, line, lines


def sweep_chart(
    values: Sequence[str], losses: Sequence[Sequence[float]], margins: Sequence[float], name: str
) -> Figure:
    """One position per value, in the given order; a run that diverged has no mark."""
    places = list(range(len(values)))
    seeds = [(place, loss) for place, row in zip(places, losses) for loss in row if math.isfinite(loss)]
    means = [sum(row) / len(row) if row else math.nan for row in losses]
    around = {"type": "data", "array": [m if math.isfinite(m) else 0.0 for m in margins], "color": palette.DENSE}
    dots = {"mode": "markers", "marks": 6, "hover": "%{y:.4f}<extra>one seed</extra>"}
    traces = [
        line([place for place, _ in seeds], [loss for _, loss in seeds], "one seed", palette.FAINT, **dots),
        line(places, means, "mean, 95 % interval", palette.DENSE, marks=9, error_y=around, mode="markers"),
    ]
    x = axis(name, tickvals=places, ticktext=list(values), range=[-0.5, len(values) - 0.5])
    return lines(traces, 240, x, axis("validation loss"), uirevision=f"{len(values)} {name}", hovermode="closest")
