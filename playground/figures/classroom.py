"""A class in pictures: students' curves with the same baselines, and the spread of runs that differ in one thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .loss import gutter_labels, rung_line
from .shapes import Figure, axis, figure, line, lines, names, note
from .wire import escaped, shortened

EMPTY = {"showticklabels": False, "showgrid": False}
NAMED, TALL = 12, 15
"""The most curves that are labelled with a name, and a name's height in pixels."""
Curve = tuple[str, Sequence[tuple[int, float]]]
"""The student's name, and the curve's (step, validation loss) points."""


def class_curves(curves: Sequence[Curve], rungs: Sequence[tuple[str, float]] = (), *, height: int = 340) -> Figure:
    """Every student's validation curve, thin; and, thick, the median of the curves measured at each step."""
    named = _named(curves)
    traces = []
    for i, (name, points) in enumerate(curves):
        look = {"width": 1.6, "opacity": 0.9} if i in named else {"width": 1.0, "opacity": 0.5}
        color, hover = named.get(i, palette.DENSE), "%{fullData.name}: %{y:.4f} at step %{x}<extra></extra>"
        traces.append(line(*_columns(points), name, color, hover=hover, **look))
    middle = medians(curves)
    if len(curves) > 2 and middle:
        hover = "median: %{y:.4f} at step %{x}<extra></extra>"
        traces.append(line(*_columns(middle), "median", palette.INK, width=2.4, dash="dot", hover=hover))
    losses = [loss for _, points in curves for _, loss in points]
    low, high = _ends([*losses, *(value for name, value in rungs if name == "floor")])
    last = max((points[-1][0] for _, points in curves), default=1)
    empty = {} if curves else EMPTY
    labels = [
        note | {"xanchor": "right", "xshift": 0, "yanchor": "bottom"} for note in gutter_labels(rungs, height, False)[0]
    ]
    return lines(
        traces,
        height,
        axis("step", range=[0, last or 1], **empty),
        axis("validation, nats per token", tickformat=".2~f", range=[low, high], **empty),
        shapes=[rung_line(name, value) for name, value in rungs],
        annotations=labels + _names_at_ends(curves, named, low, high, height),
        margin={"l": 52, "r": 110 if curves else 20, "t": 24, "b": 44},
        showlegend=False,
        hovermode="closest",
    )


def _columns(points: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [step for step, _ in points], [loss for _, loss in points]


def _ends(values: Sequence[float]) -> list[float]:
    """Both ends of an axis that shows these values, with some room around them."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.06 * (high - low), 0.002)
    return [low - room, high + room] if high - low > 1e-3 else [low - 0.05, high + 0.05]


def _named(curves: Sequence[Curve]) -> dict[int, str]:
    """Index in the list → colour, for curves with a drawn name: all, or those that end lowest and highest."""
    order = sorted((i for i, (_, points) in enumerate(curves) if points), key=lambda i: curves[i][1][-1][1])
    chosen = order if len(order) <= NAMED else order[: NAMED // 2] + order[-NAMED // 2 :]
    return {i: palette.EXPERTS[place % len(palette.EXPERTS)] for place, i in enumerate(chosen)}


def _names_at_ends(
    curves: Sequence[Curve], named: dict[int, str], low: float, high: float, height: int
) -> list[dict[str, Any]]:
    """The students' names at the right ends of their curves, moved apart where they would overlap."""
    tall = TALL * (high - low) / (height - 68)  # height of a name, in nats
    order = sorted(named, key=lambda i: curves[i][1][-1][1])
    places: list[float] = []
    for i in order:
        places.append(max(curves[i][1][-1][1], places[-1] + tall if places else low + tall / 2))
    over = max(places[-1] - (high - tall / 2), 0.0) if places else 0.0
    for place in range(len(places) - 1, -1, -1):  # names that are too high move down, and push the next
        above = places[place + 1] - tall if place + 1 < len(places) else places[place] - over
        places[place] = min(places[place], above)
    return [
        note(
            escaped(shortened(curves[i][0], 16)), y=y, color=named[i], x=1, xref="paper", yref="y", xanchor="left",
            xshift=6, yanchor="middle", showarrow=False,
        )
        for i, y in zip(order, places)
    ]  # fmt: skip


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
    positive: bool = False,
    height: int = 340,
) -> Figure:
    """A dot for every run; beside several runs their mean, with its interval as a bar if there are enough.

    Args:
        groups: (label, losses, students' names, mean, half the interval or None).
        positive: the numbers cannot be negative, so an interval is cut off at 0.
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
        bar: dict[str, Any] = {"type": "data", "array": [margin], "color": palette.INK, "thickness": 2, "width": 7}
        if positive and margin is not None and margin > mean:
            bar |= {"symmetric": False, "arrayminus": [mean]}
            said = f"mean %{{y:.4f}}, interval from 0 to {mean + margin:.4f}"
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
    y = axis(unit, tickformat=".4~f", range=[max(low, 0.0) if positive else low, high], **({} if groups else EMPTY))
    return figure(traces, height, xaxis=x, yaxis=y, margin={"l": 62, "r": 12, "t": 16, "b": 44})
