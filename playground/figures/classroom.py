"""A class in pictures: students' curves with the same baselines, and the spread of runs that differ in one thing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import palette
from .loss import gutter_labels, rung_line
from .shapes import Figure, axis, figure, line, lines, names, note
from .wire import escaped, shortened

EMPTY = {"showticklabels": False, "showgrid": False}
NAMED, TALL = len(palette.EXPERTS), 15
"""The most curves that have a name, each in a colour of its own, and a name's height in pixels."""
Curve = tuple[str, Sequence[tuple[int, float]]]
"""The student's name, and the curve's (step, validation loss) points."""


def class_curves(curves: Sequence[Curve], rungs: Sequence[tuple[str, float]] = (), *, height: int = 340) -> Figure:
    """Every student's validation curve, the lowest first; and, thick, the median of those measured at each step.

    Names are at the right ends of up to NAMED curves, of more than that of those that end lowest and highest.
    """
    curves = sorted(curves, key=lambda curve: curve[1][-1][1])
    losses = [loss for _, points in curves for _, loss in points]
    ends = _ends([*losses, *(value for name, value in rungs if name == "floor")])
    above = {"xanchor": "right", "xshift": 0, "yanchor": "bottom"}
    labels = [label | above for label in gutter_labels(rungs, height, False)[0]]
    traces, tall, place = [], TALL * (ends[1] - ends[0]) / (height - 68), -np.inf  # a name's height in nats
    for i, (name, points) in enumerate(curves):
        named = i < NAMED // 2 or i >= len(curves) - NAMED // 2
        look = {"width": 1.6, "opacity": 0.9} if named else {"width": 1.0, "opacity": 0.5}
        color = palette.EXPERTS[i if i < NAMED // 2 else i - len(curves)] if named else palette.DENSE
        hover = "%{fullData.name}: %{y:.4f} at step %{x}<extra></extra>"
        traces.append(line(*zip(*points), name, color, hover=hover, **look))
        if named:  # above the name before, so that none covers another
            place = max(points[-1][1], place + tall)
            at_end = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 6, "yref": "y", "yanchor": "middle"}
            labels.append(note(escaped(shortened(name, 16)), y=place, color=color, **at_end))
    middle = medians(curves)
    if len(curves) > 2 and middle:
        hover = "median: %{y:.4f} at step %{x}<extra></extra>"
        traces.append(line(*zip(*middle), "median", palette.INK, width=2.4, dash="dot", hover=hover))
    last = max((points[-1][0] for _, points in curves), default=1)
    empty = {} if curves else EMPTY
    return lines(
        traces,
        height,
        axis("step", range=[0, last or 1], **empty),
        axis("validation, nats per token", tickformat=".2~f", range=ends, **empty),
        shapes=[rung_line(name, value) for name, value in rungs],
        annotations=labels,
        margin={"l": 52, "r": 110 if curves else 20, "t": 24, "b": 44},
        showlegend=False,
        hovermode="closest",
    )


def _ends(values: Sequence[float]) -> list[float]:
    """Both ends of an axis that shows these values, with some room around them."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.06 * (high - low), 0.002)
    return [low - room, high + room] if high - low > 1e-3 else [low - 0.05, high + 0.05]


def medians(curves: Sequence[Curve]) -> list[tuple[int, float]]:
    """(step, median loss) at steps where at least half of the curves, and at least three, were measured."""
    at: dict[int, list[float]] = {}
    for _, points in curves:
        for step, loss in points:
            at.setdefault(step, []).append(loss)
    enough = max(3, len(curves) / 2)
    return [(step, float(np.median(losses))) for step, losses in sorted(at.items()) if len(losses) >= enough]


def class_spread(
    groups: Sequence[tuple[str, Sequence[float], Sequence[str], float, float | None]],
    unit: str = "nats per token",
    *,
    height: int = 340,
) -> Figure:
    """A dot for every run; beside several runs their mean, with its interval as a bar if there are enough.

    Args:
        groups: (label, losses, students' names, mean, half the interval or None).
    """
    traces = []
    for i, (label, losses, owners, mean, margin) in enumerate(groups):
        # side by side in the order of their losses, so that equal ones do not hide each other
        order = np.argsort(np.argsort(losses))
        place = i - 0.3 + 0.3 * (order + 0.5) / len(losses) if len(losses) > 1 else [i]
        look = {"mode": "markers", "marks": {"size": 9}, "opacity": 0.75, "text": [escaped(name) for name in owners]}
        traces.append(line(place, losses, label, palette.DENSE, hover="%{text}: %{y:.4f}<extra></extra>", **look))
        if len(losses) < 2:
            continue
        said = "mean %{y:.4f}" + (f" ± {margin:.4f}" if margin is not None else ", too few for an interval")
        bar = {"type": "data", "array": [margin], "color": palette.INK, "thickness": 2, "width": 7}
        look = {"mode": "markers", "marks": {"size": 10, "symbol": "diamond"}}
        look |= {} if margin is None else {"error_y": bar}
        traces.append(line([i + 0.2], [mean], f"{label}, mean", palette.INK, hover=f"{said}<extra></extra>", **look))
    x = names(
        [label for label, *_ in groups],
        length=40 if len(groups) < 4 else 20,
        range=[-0.6, max(len(groups), 1) - 0.4],
        fixedrange=True,
    )
    ends = [mean + side * (margin or 0) for *_, mean, margin in groups for side in (-1, 1)]
    low, high = _ends([*ends, *(loss for _, losses, *_ in groups for loss in losses)])
    y = axis(unit, tickformat=".4~f", range=[low, high], **({} if groups else EMPTY))
    return figure(traces, height, xaxis=x, yaxis=y, margin={"l": 62, "r": 12, "t": 16, "b": 44})
