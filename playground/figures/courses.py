"""Growing lines: the share right during a run, the bits in a game, milliseconds per token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .shapes import Figure, axis, legend, line, lines, note, rule


def skill_curve(
    steps: Sequence[int],
    shares: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    what: str,
    *,
    planned_steps: int | None = None,
    kind: str = "dense",
) -> Figure:
    """The share right (0 … 1) at each step, with its 95 % interval as a bar through the point."""
    share, ends = np.asarray(shares, dtype=np.float64), np.asarray(intervals, dtype=np.float64).reshape(-1, 2)
    color = palette.of_kind(kind)
    whiskers = {
        "type": "data",
        "symmetric": False,
        "array": (100 * (ends[:, 1] - share)).round(4).tolist(),
        "arrayminus": (100 * (share - ends[:, 0])).round(4).tolist(),
        "color": color,
        "thickness": 1,
        "width": 3,
    }
    # dotted: between two points nothing was written, so nothing is known
    trace = line(steps, 100 * share, what, color, width=1, dash="dot", marks=6, hover="%{y:.0f} %", error_y=whiskers)
    x = axis("step", **({"range": [0, 1.03 * planned_steps]} if planned_steps else {}))
    y = axis("% right", range=[-4, 104], tickvals=[0, 50, 100])
    return lines([trace], 200, x, y, margin={"l": 52, "r": 20, "t": 10, "b": 44}, showlegend=False)


def token_times(
    lengths: Sequence[int], cached: Sequence[float], plain: Sequence[float], *, context: int | None = None
) -> Figure:
    """Milliseconds per token against the sequence's length, with the KV cache (solid) and without (dashed).

    A line marks where the model's `context` is full.
    """
    full: dict[str, Any] = {}
    if context is not None and len(lengths) and lengths[-1] > context:
        place = {"x": context, "xref": "x", "xanchor": "right", "yanchor": "top"}
        said = note("context full", **place, bgcolor=palette.BAND, borderpad=2)
        full = {"shapes": [rule(x=context, dash="dot")], "annotations": [said]}
    return lines(
        [
            line(lengths, plain, "without the cache", palette.MUTED, dash="dash", hover="%{y:.2f} ms"),
            line(lengths, cached, "with the cache", palette.DENSE, hover="%{y:.2f} ms"),
        ],
        280,
        axis("tokens so far"),
        axis("ms per token", rangemode="tozero"),
        margin={"l": 52, "r": 12, "t": 30, "b": 44},
        **legend(traceorder="reversed"),
        **full,
    )
