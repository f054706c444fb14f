"""A class in pictures: everybody's curve beside the same baselines, and the spread of runs that differ in one thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .loss import rung_labels, rung_line
from .shapes import Figure, axis, figure, lines, names, note
from .wire import escaped, shortened

EMPTY = {"showticklabels": False, "showgrid": False}
NAMED, TALL = 12, 15
"""The most curves that carry a name, and the height of a name in pixels."""
Curve = tuple[str, Sequence[tuple[int, float]]]
"""Whose it is, and its (step, validation loss)."""


def class_curves(curves: Sequence[Curve], rungs: Sequence[tuple[str, float]] = (), *, height: int = 340) -> Figure:
    """Every student's validation curve, thin, and the median of those that were measured at a step, thick."""
    named = _named(curves)
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [step for step, _ in points],
            "y": [round(loss, 4) for _, loss in points],
            "name": escaped(name),
            "line": {"color": named.get(i, palette.DENSE), "width": 1.6 if i in named else 1.0},
            "opacity": 0.9 if i in named else 0.5,
            "showlegend": False,
            "hovertemplate": "%{fullData.name}: %{y:.4f} at step %{x}<extra></extra>",
        }
        for i, (name, points) in enumerate(curves)
    ]
    middle = medians(curves)
    if len(curves) > 2 and middle:
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [step for step, _ in middle],
                "y": [round(loss, 4) for _, loss in middle],
                "name": "median",
                "line": {"color": palette.INK, "width": 2.4, "dash": "dot"},
                "hovertemplate": "median: %{y:.4f} at step %{x}<extra></extra>",
            }
        )
    losses = [loss for _, points in curves for _, loss in points]
    low, high = _ends([*losses, *(value for name, value in rungs if name == "floor")])
    last = max((points[-1][0] for _, points in curves), default=1)
    return lines(
        traces,
        height,
        axis("step", range=[0, last or 1], **({} if curves else EMPTY)),
        axis("validation, nats per token", tickformat=".2~f", range=[low, high], **({} if curves else EMPTY)),
        shapes=[rung_line(name, value) for name, value in rungs],
        annotations=rung_labels(rungs, height, False) + _names_at_ends(curves, named, low, high, height),
        margin={"l": 52, "r": 110 if curves else 20, "t": 24, "b": 44},
        showlegend=False,
        hovermode="closest",
    )


def _ends(values: Sequence[float]) -> list[float]:
    """Both ends of an axis that shows these values, with some room around them."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.06 * (high - low), 0.002)
    return [low - room, high + room] if high - low > 1e-3 else [low - 0.05, high + 0.05]


def _named(curves: Sequence[Curve]) -> dict[int, str]:
    """Place in the list → colour, of the curves whose names are drawn: all, or those that end lowest and highest."""
    order = sorted((i for i, (_, points) in enumerate(curves) if points), key=lambda i: curves[i][1][-1][1])
    chosen = order if len(order) <= NAMED else order[: NAMED // 2] + order[-NAMED // 2 :]
    return {i: palette.EXPERTS[place % len(palette.EXPERTS)] for place, i in enumerate(chosen)}


def _names_at_ends(
    curves: Sequence[Curve], named: dict[int, str], low: float, high: float, height: int
) -> list[dict[str, Any]]:
    """The students' names at the right ends of their curves, moved apart where they would overlap."""
    tall = TALL * (high - low) / (height - 68)  # of a name, in nats
    order = sorted(named, key=lambda i: curves[i][1][-1][1])
    places: list[float] = []
    for i in order:
        places.append(max(curves[i][1][-1][1], places[-1] + tall if places else low + tall / 2))
    over = max(places[-1] - (high - tall / 2), 0.0) if places else 0.0
    for place in range(len(places) - 1, -1, -1):  # those that stand too high move down, and push the next
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
    """(step, median loss) at the steps at which at least half of the curves, and three, were measured."""
    at: dict[int, list[float]] = {}
    for _, points in curves:
        for step, loss in points:
            at.setdefault(step, []).append(loss)
    enough = max(3, len(curves) / 2)
    return [(step, float(np.median(losses))) for step, losses in sorted(at.items()) if len(losses) >= enough]


def describe_curves(
    curves: Sequence[Curve], rungs: Sequence[tuple[str, float]], left_out: int, unmasked: int = 0
) -> str:
    """Where the class stands; `unmasked` of the curves are of models without a mask."""
    if not curves:
        return "No run of the class has been measured yet."
    last = [points[-1][1] for _, points in curves]
    n = len(curves)
    words = f"{n} run{'s' if n > 1 else ''}, the last of each student"
    words += f": validation loss {f'from {min(last):.4f} to ' if n > 1 else ''}{max(last):.4f}"
    words += f", median {float(np.median(last)):.4f}" if n > 1 else ""
    floor = dict(rungs).get("floor")
    words += f"; the best possible loss is {floor:.4f}." if floor is not None else "."
    if unmasked:
        words += f" {unmasked} of these see{'s' * (unmasked == 1)} the tokens to be predicted, for want of a mask."
    if left_out:
        other = "1 run learns" if left_out == 1 else f"{left_out} runs learn"
        words += f" {other} from another text or in other tokens and cannot be shown on this scale."
    return words


def class_spread(
    groups: Sequence[tuple[str, Sequence[float], Sequence[str], float, float | None]],
    unit: str = "nats per token",
    *,
    positive: bool = False,
    height: int = 340,
) -> Figure:
    """A dot for every run; beside several their mean, with its interval as a bar where there are enough.

    Args:
        groups: (label, losses, whose, mean, half the interval or None).
        positive: nothing of an interval is drawn below 0, where none of these numbers can lie.
    """
    traces = []
    for i, (label, losses, owners, mean, margin) in enumerate(groups):
        # side by side in the order of their losses, so that equal ones do not hide each other
        order = np.argsort(np.argsort(losses))
        place = i - 0.3 + 0.3 * (order + 0.5) / len(losses) if len(losses) > 1 else [i]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [round(float(x), 3) for x in place],
                "y": [round(float(y), 4) for y in losses],
                "text": [escaped(name) for name in owners],
                "name": escaped(label),
                "marker": {"color": palette.DENSE, "size": 9, "opacity": 0.75},
                "hovertemplate": "%{text}: %{y:.4f}<extra></extra>",
            }
        )
        if len(losses) < 2:
            continue
        bar = {"type": "data", "array": [round(margin or 0, 5)], "color": palette.INK, "thickness": 2, "width": 7}
        said = "mean %{y:.4f}" + (f" ± {margin:.4f}" if margin is not None else ", too few for an interval")
        if positive and margin is not None and margin > mean:
            bar |= {"symmetric": False, "arrayminus": [round(mean, 5)]}
            said = f"mean %{{y:.4f}}, interval from 0 to {mean + margin:.4f}"
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [i + 0.2],
                "y": [round(mean, 4)],
                "name": escaped(f"{label}, mean"),
                "marker": {"color": palette.INK, "size": 10, "symbol": "diamond"},
                "hovertemplate": f"{said}<extra></extra>",
                **({"error_y": bar} if margin is not None else {}),
            }
        )
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
