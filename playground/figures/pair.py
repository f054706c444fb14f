"""Two models' validation losses on one axis, with the baselines; and the verdict as points about zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import palette
from .loss import GUTTER, gutter_labels, loss_axis, rung_line
from .shapes import Figure, axis, figure, hidden, legend, line, lines, note, rule
from .wire import escaped


@dataclass(frozen=True)
class Curve:
    """The validation losses of one model with one seed."""

    name: str
    kind: str
    """dense or moe: picks colour and dash."""
    x: Sequence[float]
    """Steps."""
    y: Sequence[float]
    """Nats per token."""
    is_first: bool = True
    """Whether it is the first seed's curve; the others are drawn thin behind it."""


def pair_curves(
    curves: Sequence[Curve],
    rungs: Sequence[tuple[str, float]] = (),
    *,
    end: float | None = None,
    log_y: bool = False,
    height: int = 300,
) -> Figure:
    """Validation curves of both models over the steps.

    Args:
        rungs: (name, nats per token) from worst to best, as `Baselines.losses()` gives them.
        end: where the axis ends, so that a growing run only ever appends points.
        log_y: as for `loss_curve`.
    """
    traces = [_trace(curve) for curve in sorted(curves, key=lambda c: c.is_first)]  # the first seed's on top
    notes, narrow = gutter_labels(rungs, height, log_y, curves=[curve.y for curve in curves])
    return lines(
        traces,
        height,
        axis("step", **({"range": [0, end]} if end else {})),
        loss_axis(log_y),
        narrow=narrow | {"margin.r": 8},
        margin={"l": 56, "r": GUTTER if rungs else 20, "t": 36, "b": 44},
        shapes=[rung_line(name, value) for name, value in rungs],
        annotations=notes,
        **legend("right"),
        hovermode="closest",
        uirevision=str(end),
    )


def difference_lines(
    steps: Sequence[int],
    differences: np.ndarray,
    mean: np.ndarray,
    margin: np.ndarray,
    *,
    end: float | None = None,
) -> Figure:
    """The MoE model's loss minus the dense one's during training: each seed, the mean, and its 95 % interval.

    Args:
        steps: the N steps at which all pairs were evaluated.
        differences: (seeds, N) nats per token.
        mean, margin: (N,) mean differences, and half the widths of their 95 % intervals.
        end: the last step on the axis.
    """
    traces = []
    if len(differences) > 1:
        traces += [
            line(steps, mean - margin, "95 % interval", palette.FAINT, width=0, showlegend=False, hoverinfo="skip"),
            line(steps, mean + margin, "95 % interval", palette.FAINT, width=0, fill="tonexty",
                 fillcolor="rgba(133,143,154,0.2)", hoverinfo="skip"),
            *(line(steps, each, "each seed", palette.FAINT, width=1, showlegend=not i, meta={"series": f"seed {i + 1}"})
              for i, each in enumerate(differences)),
        ]  # fmt: skip
    name = "mean" if len(differences) > 1 else "one seed"
    traces.append(line(steps, mean, name, palette.INK, width=2.2, marks=4, hover="%{y:.4f}"))
    # differences are far larger in the first fifth of the steps: there, the line may leave the picture
    late = differences[:, np.asarray(steps) >= 0.2 * (steps[-1] if len(steps) else 0)]
    reach = 1.25 * max([abs(float(x)) for x in late.ravel() if math.isfinite(x)] + [1e-3])
    sides = {"x": 1, "xref": "paper", "xanchor": "right", "yref": "paper"}
    return lines(
        traces,
        300,
        axis("step", **({"range": [0, end]} if end else {})),
        axis("MoE − dense, loss", range=[-reach, reach]),
        margin={"l": 60, "r": 16, "t": 30, "b": 44},
        shapes=[rule(y=0, color=palette.INK, dash="dot")],
        annotations=[
            note("dense better ↑", color=palette.DENSE, **sides, y=0.99, yanchor="top"),
            note("MoE better ↓", color=palette.MOE, **sides, y=0.01, yanchor="bottom"),
        ],
        **legend(),
        hovermode="closest",
        uirevision=f"{reach:.1g} {end}",
    )


def verdict_figure(differences: Sequence[float], mean: float | None, margin: float | None) -> Figure:
    """Mixture minus dense: a tick per seed, the mean with its 95 % interval, and the line for no difference."""
    tick = {"size": 9, "symbol": "line-ns-open", "line": {"width": 2}}
    hover = "%{x:.4f}<extra></extra>"
    places = {"mode": "markers", "hovertemplate": hover}
    ticks = differences if len(differences) > 1 or mean is None else []
    traces = [line(ticks, [0] * len(ticks), "one seed", palette.MUTED, marks=tick, **places)]
    reach = max([abs(d) for d in differences] + [1e-3])
    if mean is not None and margin is not None:
        reach = max(reach, abs(mean) + margin)
        color = palette.FAINT if abs(mean) <= margin else palette.MOE if mean < 0 else palette.DENSE
        around = {"type": "data", "array": [margin], "color": color, "thickness": 3, "width": 0}
        places["hovertemplate"] = f"%{{x:.4f}} ± {margin:.4f}<extra></extra>"
        traces.append(line([mean], [0], "95 % interval", color, marks=11, error_x=around, **places))
    return figure(
        traces,
        86,
        narrow={"margin.l": 8},
        margin={"l": 8, "r": 8, "t": 20, "b": 24},
        xaxis=axis(range=[-1.15 * reach, 1.15 * reach], nticks=5, showgrid=False),
        yaxis=hidden(range=[-1, 1]),
        shapes=[rule(x=0, color=palette.INK, dash="dot")],
        annotations=[
            note("← MoE better", color=palette.MOE),
            note("dense better →", color=palette.DENSE, x=1, xanchor="right"),
        ],
        uirevision=f"{reach:.2g}",
    )


def _trace(curve: Curve) -> dict[str, Any]:
    mixture, first = curve.kind == "moe", curve.is_first
    return line(
        curve.x, curve.y, curve.name, palette.of_kind(curve.kind), width=2.6 if first else 1.1,
        dash="dash" if mixture else "solid", exact=True, opacity=1.0 if first else 0.5, showlegend=first,
        hover=f"%{{y:.4f}}<extra>{escaped(curve.name)}</extra>",
        marks={"size": 6, "symbol": "diamond" if mixture else "circle"} if first else None,
    )  # fmt: skip
