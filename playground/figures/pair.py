"""Two models' validation losses against the same axis, with the ladder; and the verdict as points about zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import palette
from .loss import rung_labels, rung_line
from .wire import axis, escaped, layout, numbers, signed

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


def pair_curves(
    curves: Sequence[Curve],
    rungs: Sequence[tuple[str, float]] = (),
    *,
    x: str = "step",
    end: float | None = None,
    above_floor: bool = False,
    recorded: bool = False,
    height: int = 380,
) -> dict[str, Any]:
    """Validation curves of both models over a common axis.

    Args:
        rungs: (name, nats per token) from worst to best, as `Ladder.rungs()` gives them.
        x: step, tokens, flops or seconds: what the curves' x values are.
        end: where the axis ends, so that a growing run only ever appends points.
        above_floor: draw losses minus the floor on a log axis, which spreads out what happens at the end.
        recorded: says that these runs ship with the project.
    """
    floor = dict(rungs).get("floor")
    above_floor = above_floor and floor is not None
    traces = []
    for curve in sorted(curves, key=lambda c: c.is_first):  # the first seed's on top
        y = np.asarray(curve.y, dtype=np.float64)
        if above_floor:
            y = np.where(y > floor, y - floor, np.nan)
        traces.append(_trace(curve, y))
    x_axis = axis(X_TITLES[x], **({"tickformat": "~s"} if x in ("tokens", "flops") else {}))
    if end:
        x_axis["range"] = [0, end]
    annotations = [] if above_floor else rung_labels(rungs, height, False)
    if recorded:
        annotations.append({
            "text": "recorded", "xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left",
            "yanchor": "bottom", "yshift": 8, "showarrow": False, "font": {"size": 11, "color": palette.MUTED},
            "bgcolor": palette.BAND, "borderpad": 4,
        })  # fmt: skip
    y_axis = (
        axis("nats above the floor", type="log", dtick="D2", tickformat=".2~g")
        if above_floor
        else axis("nats per token")
    )
    drawing = layout(
        height,
        narrow={"margin.l": 42, "margin.r": 8, "legend.font.size": 10},
        margin={"l": 56, "r": 20, "t": 36, "b": 44},
        xaxis=x_axis,
        yaxis=y_axis,
        shapes=[] if above_floor else [rung_line(name, value) for name, value in rungs],
        annotations=annotations,
        showlegend=True,
        legend={
            "orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom",
            "font": {"size": 11, "color": palette.MUTED},
        },
        hovermode="closest",
        uirevision=f"{x} {above_floor} {end}",
    )  # fmt: skip
    return {"data": traces, "layout": drawing}


def describe_pair(curves: Sequence[Curve], rungs: Sequence[tuple[str, float]] = ()) -> str:
    """Where both first curves stand, in a sentence."""
    firsts = {c.kind: c for c in curves if c.is_first and len(c.y) and math.isfinite(c.y[-1])}
    if len(firsts) < 2:
        return "Both curves appear here: dense with a solid line and discs, the mixture dashed with diamonds."
    dense, moe = firsts["dense"].y[-1], firsts["moe"].y[-1]
    floor = dict(rungs).get("floor")
    words = f"First seed: dense {dense:.4f}, MoE {moe:.4f} nats per token"
    if floor is not None:
        words += f", {dense - floor:.4f} and {moe - floor:.4f} above the floor"
    others = sum(not c.is_first for c in curves) // 2
    if others:
        words += "; thin lines are the other seed" + (f"s, {others} of them" if others > 1 else "")
    return words + "."


def verdict_figure(
    differences: Sequence[float], mean: float | None, margin: float | None, *, height: int = 132
) -> dict[str, Any]:
    """Mixture minus dense, a mark per seed, the mean with its 95 % interval, and the line of no difference."""
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": numbers(differences),
            "y": [0] * len(differences),
            "name": "one seed",
            "marker": {"size": 9, "symbol": "line-ns-open", "color": palette.MUTED, "line": {"width": 2}},
            "hovertemplate": "%{x:.4f}<extra></extra>",
        }
    ]
    reach = max([abs(d) for d in differences] + [1e-3])
    if mean is not None and margin is not None:
        reach = max(reach, abs(mean) + margin)
        color = palette.FAINT if abs(mean) <= margin else palette.MOE if mean < 0 else palette.DENSE
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": numbers([mean]),
                "y": [1],
                "name": "mean, 95 % interval",
                "marker": {"size": 10, "symbol": "diamond", "color": color},
                "error_x": {"type": "data", "array": [margin], "color": color, "thickness": 2, "width": 6},
                "hovertemplate": f"%{{x:.4f}} ± {margin:.4f}<extra></extra>",
            }
        )
    drawing = layout(
        height,
        narrow={"margin.l": 8},
        margin={"l": 8, "r": 8, "t": 20, "b": 40},
        xaxis=axis("MoE − dense, nats per token", range=[-1.15 * reach, 1.15 * reach], nticks=7),
        yaxis=axis(range=[-0.7, 1.7], showticklabels=False, showgrid=False, fixedrange=True),
        shapes=[{
            "type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1,
            "line": {"color": palette.INK, "width": 1, "dash": "dot"},
        }],
        annotations=[
            _side("← MoE better", 0, palette.MOE), _side("dense better →", 1, palette.DENSE),
        ],
        uirevision=f"{reach:.2g}",
    )  # fmt: skip
    return {"data": traces, "layout": drawing}


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
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers" if curve.is_first else "lines",
        "x": numbers(curve.x, "f8"),
        "y": numbers(y),
        "name": escaped(curve.name),
        "line": {"color": color, "width": 2.6 if curve.is_first else 1.1, "dash": dash},
        "opacity": 1.0 if curve.is_first else 0.5,
        "showlegend": curve.is_first,
        "hovertemplate": f"%{{y:.4f}}<extra>{escaped(curve.name)}</extra>",
    }
    if curve.is_first:
        symbol = "diamond" if curve.kind == "moe" else "circle"
        trace["marker"] = {"size": 6, "color": color, "symbol": symbol}
    return trace


def _side(text: str, x: float, color: str) -> dict[str, Any]:
    return {
        "text": text, "xref": "paper", "yref": "paper", "x": x, "y": 1, "xanchor": "left" if x == 0 else "right",
        "yanchor": "bottom", "showarrow": False, "font": {"size": 11, "color": color},
    }  # fmt: skip
