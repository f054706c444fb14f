"""Two models' validation losses against the same axis, with the baselines; and the verdict as points about zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..words.numbers import signed
from . import palette
from .loss import rung_labels, rung_line
from .shapes import Figure, axis, figure, hidden, legend, line, lines, note, rule
from .shapes import recorded as label
from .wire import escaped

X_TITLES = {
    "step": "optimizer steps",
    "tokens": "tokens of training",
    "flops": "floating-point operations of training",
    "seconds": "seconds of training",
}


@dataclass(frozen=True)
class Curve:
    """The validation losses of one model from one seed."""

    name: str
    kind: str
    """dense or moe: picks colour and dash."""
    x: Sequence[float]
    """In the unit of the axis."""
    y: Sequence[float]
    """Nats per token."""
    is_first: bool = True
    """Whether it is the first seed's; the others are drawn thin behind it."""
    floor: float | None = None
    """The least that its own windows can cost; None where nobody knows it."""


def pair_curves(
    curves: Sequence[Curve],
    rungs: Sequence[tuple[str, float]] = (),
    *,
    x: str = "step",
    end: float | None = None,
    above_floor: bool = False,
    recorded: bool = False,
    height: int = 380,
) -> Figure:
    """Validation curves of both models over a common axis.

    Args:
        rungs: (name, nats per token) from worst to best, as `Baselines.losses()` gives them.
        x: step, tokens, flops or seconds: what the curves' x values are.
        end: where the axis ends, so that a growing run only ever appends points.
        above_floor: draw losses minus each curve's floor on a log axis, which spreads out what happens at the end.
        recorded: says that these runs ship with the project.
    """
    above_floor = above_floor and bool(curves) and all(curve.floor is not None for curve in curves)
    traces = []
    for curve in sorted(curves, key=lambda c: c.is_first):  # the first seed's on top
        y = np.asarray(curve.y, dtype=np.float64)
        if above_floor:
            y = np.where(y > curve.floor, y - curve.floor, np.nan)
        traces.append(_trace(curve, y))
    x_axis = axis(X_TITLES[x], **({"tickformat": "~s"} if x in ("tokens", "flops") else {}))
    if end:
        x_axis["range"] = [0, end]
    y_axis = (
        axis("nats above the floor", type="log", dtick="D2", tickformat=".2~g")
        if above_floor
        else axis("nats per token")
    )
    return lines(
        traces,
        height,
        x_axis,
        y_axis,
        narrow={"margin.r": 8, "legend.font.size": 10},
        margin={"l": 56, "r": 20, "t": 36, "b": 44},
        shapes=[] if above_floor else [rung_line(name, value) for name, value in rungs],
        annotations=[*([] if above_floor else rung_labels(rungs, height, False)), *([label()] if recorded else [])],
        **legend("right"),
        hovermode="closest",
        uirevision=f"{x} {above_floor} {end}",
    )


def describe_pair(curves: Sequence[Curve], alike: bool = True) -> str:
    """Where both first curves stand, in a sentence; nothing side by side where their windows are not the same."""
    firsts = {c.kind: c for c in curves if c.is_first and len(c.y) and math.isfinite(c.y[-1])}
    if len(firsts) < 2:
        return "Both curves appear here: dense with a solid line and discs, the mixture dashed with diamonds."
    both = [firsts["dense"], firsts["moe"]]
    dense, moe = (c.y[-1] for c in both)
    gaps = [signed(c.y[-1] - c.floor, 4) if c.floor is not None else "" for c in both]
    if not alike:
        each = [f"{loss:.4f}" + (f" ({gap} above its floor)" if gap else "") for loss, gap in zip((dense, moe), gaps)]
        return (
            f"Dense {each[0]}, MoE {each[1]} nats per token, each recorded on its own validation windows: these two "
            "cannot be held against each other."
        )
    words = f"First seed: dense {dense:.4f}, MoE {moe:.4f} nats per token"
    if all(gaps):
        words += f", {gaps[0]} and {gaps[1]} above the floor"
    others = sum(not c.is_first for c in curves) // 2
    if others:
        words += "; thin lines are the other seed" + (f"s, {others} of them" if others > 1 else "")
    return words + "."


def verdict_figure(differences: Sequence[float], mean: float | None, margin: float | None) -> Figure:
    """Mixture minus dense, a mark per seed, the mean with its 95 % interval, and the line of no difference."""
    tick = {"size": 9, "symbol": "line-ns-open", "line": {"width": 2}}
    hover, one, both = "%{x:.4f}<extra></extra>", "one seed", "mean, 95 % interval"
    places = {"mode": "markers", "hovertemplate": hover}
    traces = [line(differences, [0] * len(differences), one, palette.MUTED, marks=tick, **places)]
    reach = max([abs(d) for d in differences] + [1e-3])
    if mean is not None and margin is not None:
        reach = max(reach, abs(mean) + margin)
        color = palette.FAINT if abs(mean) <= margin else palette.MOE if mean < 0 else palette.DENSE
        around = {"type": "data", "array": [margin], "color": color, "thickness": 2, "width": 6}
        places["hovertemplate"] = f"%{{x:.4f}} ± {margin:.4f}<extra></extra>"
        diamond = {"size": 10, "symbol": "diamond"}
        traces.append(line([mean], [1], both, color, marks=diamond, error_x=around, **places))
    return figure(
        traces,
        132,
        narrow={"margin.l": 8},
        margin={"l": 8, "r": 8, "t": 20, "b": 40},
        xaxis=axis("MoE − dense, nats per token", range=[-1.15 * reach, 1.15 * reach], nticks=7),
        yaxis=hidden(range=[-0.7, 1.7]),
        shapes=[rule(x=0, color=palette.INK, dash="dot")],
        annotations=[
            note("← MoE better", color=palette.MOE),
            note("dense better →", color=palette.DENSE, x=1, xanchor="right"),
        ],
        uirevision=f"{reach:.2g}",
    )


def describe_verdict(differences: Sequence[float], mean: float | None, margin: float | None) -> str:
    """The same as a sentence."""
    if not differences:
        return "Each completed pair puts a mark here."
    marks = ", ".join(signed(d, 4) for d in differences)
    if mean is None or margin is None:
        return f"MoE minus dense by seed: {marks}."
    return f"MoE minus dense by seed: {marks}. The interval {'leaves out' if abs(mean) > margin else 'holds'} zero."


def _trace(curve: Curve, y: np.ndarray) -> dict[str, Any]:
    color = palette.MOE if curve.kind == "moe" else palette.DENSE
    dash = "dash" if curve.kind == "moe" else "solid"
    trace = line(
        curve.x, y, curve.name, color, width=2.6 if curve.is_first else 1.1, dash=dash, exact=True,
        opacity=1.0 if curve.is_first else 0.5, showlegend=curve.is_first,
        hover=f"%{{y:.4f}}<extra>{escaped(curve.name)}</extra>",
        marks={"size": 6, "symbol": "diamond" if curve.kind == "moe" else "circle"} if curve.is_first else None,
    )  # fmt: skip
    return trace
