"""The loss curve with its baselines: how far the model has come, and how far it can still go."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from textwrap import wrap
from typing import Any

import numpy as np

from ..words.baselines import title
from . import palette
from .shapes import Figure, axis, legend, line, lines, note, recorded, rule
from .wire import escaped

_POINTS = 400
"""About this many points of the batch loss are drawn; more cannot be told apart on a page."""

_HEIGHT = 360
TALL = 18
"""A label's height in pixels."""
GUTTER = 152
"""Pixels at the right for the baselines' names."""


@dataclass(frozen=True)
class Run:
    """One run's curves, in the columns of `training.History`."""

    name: str
    steps: Mapping[str, Sequence[float]]
    """Columns `step`, `loss`, `seconds`, …: one entry per optimizer step."""
    evaluations: Mapping[str, Sequence[float]]
    """Columns `step`, `train_loss`, `val_loss`, `seconds`."""
    kind: str = "dense"
    """dense or moe: picks the colour."""
    best: tuple[int, float] | None = None
    """(step, validation loss) of a point to mark; None for none."""
    recorded: bool = False
    """True for a run that happened earlier and ships with the project: the chart says so."""


def loss_curve(
    run: Run,
    rungs: Sequence[tuple[str, float]] = (),
    others: Sequence[Run] = (),
    *,
    planned_steps: int | None = None,
    log_y: bool = False,
    sayings: Mapping[str, str] | None = None,
) -> Figure:
    """Batch loss (thin), training and validation loss of `run`, the validation curves of `others`, and the baselines.

    Args:
        rungs: (name, nats per token) from worst to best, as `Baselines.losses()` gives them.
        planned_steps: fixes the end of the step axis and how batch losses are thinned (to about 400 bucket means),
            so that a growing run only ever appends points.
        log_y: spreads out what happens close to a low floor.
        sayings: by a baseline's name, the text shown when the pointer is over its label.
    """
    traces = [
        line(other.evaluations["step"], other.evaluations["val_loss"], f"{other.name}, validation", color, width=1.8)
        for other, color in zip(others, cycle(palette.OTHERS))
    ]
    losses = [loss for other in others for loss in other.evaluations["val_loss"]]
    color = palette.of_kind(run.kind)
    bucket = bucket_size(planned_steps or len(run.steps["step"]))
    at, means = bucket_means(run.steps["step"], bucket), bucket_means(run.steps["loss"], bucket)
    losses += [*means, *run.evaluations["train_loss"]]
    of = "" if bucket == 1 else f" (mean of {bucket})"
    points, training, validation = (run.evaluations[name] for name in ("step", "train_loss", "val_loss"))
    traces += [
        line(at, means, "batch loss", palette.FAINT, width=1.2, opacity=0.9, hover="%{y:.4f}" + of),
        line(points, training, "training", color, width=1.6, dash="dot"),
        line(points, validation, "validation", color, width=2.6, marks=5),
    ]
    if run.best is not None:
        mark = {"size": 11, "symbol": "circle-open", "line": {"width": 2}}
        traces.append(line([run.best[0]], [run.best[1]], best_name(run.best), palette.INK, marks=mark, mode="markers"))
    # room at both ends, so that the first and last points are not cut off
    x_axis = axis("step", **({"range": [-0.015 * planned_steps, 1.015 * planned_steps]} if planned_steps else {}))
    labelled = bool(rungs) or not run.recorded  # a live run's baselines come a moment later
    notes, narrow = gutter_labels(rungs, _HEIGHT, log_y, sayings, [validation], losses)
    narrow |= {"margin.r": 8, "yaxis.showgrid": False}  # a grid's line would strike through a baseline's name
    if run.best is not None:
        narrow["margin.t"] = 54  # a second row of the legend
    if run.recorded:
        narrow |= {"margin.t": 62, f"annotations.{len(notes)}.yshift": 32}  # over the legend
        notes.append(recorded())
    return lines(
        traces,
        _HEIGHT,
        x_axis,
        loss_axis(log_y, **({} if rungs else _heights(validation))),
        narrow=narrow,
        margin={"l": 52, "r": GUTTER if labelled else 20, "t": 36, "b": 44},
        shapes=[rung_line(name, value) for name, value in rungs],
        annotations=notes,
        **legend("right"),
        hovermode="x unified",
        # Another run or another axis is another picture: the zoom is reset.
        uirevision=f"{run.name} {log_y} {planned_steps}",
    )


def loss_axis(log_y: bool, **more: Any) -> dict[str, Any]:
    """The y axis of a chart of losses; on a log axis, numbers below 0.01 have more decimals."""
    if log_y:
        return axis("loss (log scale)", tickformat=".2~r", type="log", dtick="D2")
    return axis("loss", tickformat=".2~f", **more)


def best_name(best: tuple[int, float]) -> str:
    """What the legend calls the lowest point of the validation curve."""
    return f"best: step {best[0]:,}"


def _heights(losses: Sequence[float]) -> dict[str, Any]:
    """Settings of a linear y axis for these first losses, before the baselines are known, which spread it out."""
    if not losses:
        return {"showticklabels": False}  # with nothing to show, plotly would draw from −1 to 4
    around = {"autorangeoptions": {"include": [0.75 * losses[0], 1.05 * losses[0]]}}
    return around if math.isfinite(losses[0]) else {}


def bucket_size(n_steps: int) -> int:
    """The number of steps that are averaged into one point of the batch loss."""
    return max(1, -(-n_steps // _POINTS))


def bucket_means(values: Sequence[float], bucket: int) -> np.ndarray:
    """Means (N,) of whole buckets only, so that points already drawn never change while the run grows."""
    array = np.asarray(values, dtype=np.float64)
    whole = len(array) // bucket * bucket
    return array[:whole].reshape(-1, bucket).mean(axis=1)


def rung_line(name: str, value: float) -> Figure:
    """A baseline across the whole chart."""
    if name == "floor":
        return rule(y=value, color=palette.HIGHLIGHT, width=1.4, dash="solid", layer="below")
    return rule(y=value, color=palette.FAINT, layer="below")


def gutter_labels(
    rungs: Sequence[tuple[str, float]],
    height: int,
    log_y: bool,
    sayings: Mapping[str, str] | None = None,
    curves: Sequence[Sequence[float]] = (),
    losses: Sequence[float] = (),
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The baselines' names and losses, as labels to the right of the picture that do not overlap.

    Also returns the changes for a narrow picture: names above their lines, the best possible loss below its own, or on
    the other side where a curve ends there. A name that would cover a curve's end, another line, or a name nearer to
    the first curve's end, is left out with its line. The best possible loss always stays. `losses` are all that the
    picture shows, beside the `curves`.
    """
    if not rungs:
        return [], {}
    places = [height_of(value, log_y) for _, value in rungs]
    measured = [[loss for loss in curve if math.isfinite(loss)] for curve in curves]
    drawn = [height_of(loss, log_y) for loss in chain(*measured, losses) if math.isfinite(loss)]
    pixel = (height - 100) / (max(places + drawn) - min(places + drawn) or 1.0)
    passed = sum(measured[0][-1] < value for _, value in rungs) if any(measured[:1]) else 0
    labels: dict[int, dict[str, Any]] = {}
    narrow: dict[str, Any] = {}
    ends = [height_of(loss, log_y) * pixel for each in measured for loss in each[-max(2, len(each) // 4) :]]
    struck = lambda at: any(abs(at - end) < TALL / 2 for end in ends)  # noqa: E731
    sides = ((-9, 9) if name == "floor" else (9, -9) for name, _ in rungs)
    over = [min((place * pixel + side for side in both), key=struck) for place, both in zip(places, sides)]
    seen: list[int] = []
    for i in sorted(range(len(rungs)), key=lambda i: (rungs[i][0] != "floor", abs(i + 0.25 - passed))):
        crossed = any(abs(over[i] - drawn_at * pixel) < TALL / 2 - 1 for drawn_at in places)
        apart = all(abs(over[i] - over[other]) >= TALL for other in seen)
        if rungs[i][0] == "floor" or (apart and not crossed and not struck(over[i])):
            seen.append(i)
    last = math.inf
    for i in sorted(range(len(rungs)), key=places.__getitem__, reverse=True):  # a small text's bigram may be the worse
        (name, value), place = rungs[i], places[i]
        at = min(place * pixel, last - TALL)
        answer = {"hovertext": "<br>".join(wrap(escaped(sayings[name]), 60))} if sayings and name in sayings else {}
        text = f"{title(name)} {value:.{3 if name == 'floor' else 2}f}"
        color = palette.HIGHLIGHT if name == "floor" else palette.MUTED
        shift = {"x": 1, "xanchor": "left", "xshift": 6, "yref": "y", "yanchor": "middle", "yshift": at - place * pixel}
        labels[i] = note(text, y=place, color=color, **shift, **answer)
        inside = {"xanchor": "right", "xshift": 0, "yshift": over[i] - place * pixel, "visible": i in seen}
        narrow |= {f"annotations.{i}.{key}": said for key, said in inside.items()}
        narrow[f"shapes.{i}.visible"] = i in seen
        last = at
    return [labels[i] for i in range(len(rungs))], narrow


def height_of(loss: float, log_y: bool) -> float:
    """The position of a loss along the axis; on a log axis an exponent, as plotly takes labels' positions."""
    return math.log10(max(loss, 1e-6)) if log_y else loss
