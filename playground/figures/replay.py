"""The timeline of a run: over the steps, what heads attend to above and losses below, with the chosen moment marked.

The snapshots stand equally far apart, as on the slider below it: early steps, which change most, are spread out.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import palette, shapes
from .shapes import FIXED, Figure, axis, legend, lines, note, rule
from .shapes import recorded as label
from .wire import escaped, numbers

BESIDE = (44, 20)
"""Pixels to the left and to the right of the axis, at any width."""


def timeline(
    evaluations: Mapping[str, Sequence[float]],
    steps: Sequence[int],
    prompt_losses: np.ndarray,
    scores: np.ndarray,
    *,
    moment: int,
    chosen: tuple[int, int],
    rose: tuple[int, int] | None = None,
    rungs: Sequence[tuple[str, float]] = (),
    recorded: bool = False,
) -> Figure:
    """Two panels: one line per head, its weight on one kind of token; losses on validation text and prompt.

    Args:
        evaluations: columns `step` and `val_loss` of the run's history; may be empty.
        steps: the M snapshots; prompt_losses: (M,) nats; scores: (M, L, H).
        moment: the step to mark; chosen: (layer, head) of the line to highlight.
        rose: the steps to shade, between which the highlighted line rose.
        rungs: (name, nats per token) of at most two baselines, the best possible loss last.

    The x of a click is a snapshot's index, or between two.
    """
    M, L, H = scores.shape
    line = functools.partial(_line, steps)
    measured = [evaluations.get(column, ()) for column in ("step", "val_loss")]
    curves = [
        line(*measured, "validation loss", palette.DENSE, width=2.2),
        line(steps, prompt_losses, "loss on this prompt", palette.MOE, width=1.6, dash="dot"),
    ]
    for layer in range(L):
        for head in range(H):
            mine = (layer, head) == chosen
            color = palette.SCORES if mine else palette.FAINT
            look = {"width": 3.0, "marks": 5, "zorder": 1} if mine else {"width": 1.4, "showlegend": False}
            name = f"head {layer}.{head}"
            curves.append(line(steps, scores[:, layer, head], name, color, yaxis="y2", legend="legend2", **look))
    if L * H > 1:  # a line of its own in the legend
        curves.append(line([0], [np.nan], "other heads", palette.FAINT, width=1.4, yaxis="y2", legend="legend2"))
    right = {"x": 1, "xanchor": "right", "xshift": -8, "yref": "y"}
    # the first name above its line, the second below, where no curve goes
    rung_names = [
        note(escaped(rung), **right, y=value, yanchor=side) for (rung, value), side in zip(rungs, ("bottom", "top"))
    ]
    shade = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "fillcolor": palette.HIGHLIGHT, "opacity": 0.18}
    shade |= {"layer": "below", "line": {"width": 0}}
    rise = [{**shade, **dict(zip(("x0", "x1"), _places(steps, rose).tolist()))}] if rose else []
    fixed = {"automargin": False, **FIXED}
    return lines(
        curves,
        380,
        axis(range=[0, max(M - 1, 1)], **_ticks(steps), **fixed),
        axis("nats per token", domain=[0, 0.44], rangemode="tozero", **fixed),
        yaxis2=axis("mean weight", domain=[0.56, 1], range=[-0.02, 1.02], **fixed),
        margin={"l": BESIDE[0], "r": BESIDE[1], "t": 36, "b": 22},
        narrow={"margin.l": BESIDE[0]},
        shapes=[
            *rise,
            rule(x=float(_places(steps, [moment])[0]), xref="x", color=palette.HIGHLIGHT, width=2, dash="solid"),
            *(rule(y=value, yref="y", color=palette.FAINT, layer="below") for _, value in rungs),
        ],
        annotations=[*rung_names, *([label()] if recorded else [])],
        legend={**legend("right")["legend"], "y": 0.45},
        legend2=legend("right")["legend"],
        hovermode="closest",
        uirevision=f"{M} {L} {H} {steps[-1] if len(steps) else 0}",
    )


def _places(steps: Sequence[int], at: Sequence[float]) -> np.ndarray:
    """Where steps stand on the axis: between the snapshots before and after."""
    return np.interp(np.asarray(at, dtype=np.float64), steps, range(len(steps)))


def _ticks(steps: Sequence[int]) -> dict[str, Any]:
    """The steps of five snapshots, equally far apart."""
    shown = np.unique(np.linspace(0, len(steps) - 1, 5).round().astype(int)).tolist()
    return {"tickvals": shown, "ticktext": [f"{steps[i]:,}" for i in shown]}


def _line(
    steps: Sequence[int], x: Sequence[float], y: Sequence[float], name: str, color: str, **more: Any
) -> dict[str, Any]:
    """A line over the steps `x`, up to the last snapshot."""
    x = [step for step in x if step <= steps[-1]]
    hover = f"{name} %{{y:.4f}} at step %{{customdata:,}}<extra></extra>"
    places, y = _places(steps, x), y[: len(x)]
    return shapes.line(places, y, name, color, hover=hover, customdata=numbers(x), meta={"x": numbers(x)}, **more)
