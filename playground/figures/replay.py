"""The timeline of a run: over the steps, what heads attend to above and losses below, with the chosen moment marked.

The x axis is the square root of the step, as the snapshots are spaced: early steps change most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import palette
from .shapes import FIXED, Figure, axis, legend, line, lines, note, rule
from .shapes import recorded as label
from .wire import escaped, numbers


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

    The x of a click is a square root: `step_at` converts it to a step.
    """
    M, L, H = scores.shape
    measured = [evaluations.get(column, ()) for column in ("step", "val_loss")]
    curves = [
        _line(*measured, "validation loss", palette.DENSE, width=2.2),
        _line(steps, prompt_losses, "loss on this prompt", palette.MOE, width=1.6, dash="dot"),
    ]
    for layer in range(L):
        for head in range(H):
            mine = (layer, head) == chosen
            color = palette.SCORES if mine else palette.FAINT
            look = {"width": 3.0, "marks": 5, "zorder": 1} if mine else {"width": 1.4, "showlegend": False}
            name = f"head {layer}.{head}"
            curves.append(_line(steps, scores[:, layer, head], name, color, yaxis="y2", legend="legend2", **look))
    right = {"x": 1, "xanchor": "right", "xshift": -8, "yref": "y"}
    # the first name above its line, the second below, where no curve goes
    rung_names = [
        note(escaped(rung), **right, y=value, yanchor=side) for (rung, value), side in zip(rungs, ("bottom", "top"))
    ]
    shade = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "fillcolor": palette.HIGHLIGHT, "opacity": 0.18}
    shade |= {"layer": "below", "line": {"width": 0}}
    rise = [{**shade, "x0": math.sqrt(rose[0]), "x1": math.sqrt(rose[1])}] if rose else []
    last, fixed = max([*steps, 1]), {"automargin": False, **FIXED}
    return lines(
        curves,
        440,
        axis("step (early ones spread out)", range=[0, math.sqrt(last)], **_ticks(last), **fixed),
        axis("nats per token", domain=[0, 0.44], rangemode="tozero", **fixed),
        yaxis2=axis("mean weight", domain=[0.56, 1], range=[-0.02, 1.02], **fixed),
        margin={"l": 52, "r": 20, "t": 36, "b": 40},
        shapes=[
            *rise,
            rule(x=math.sqrt(moment), xref="x", color=palette.HIGHLIGHT, width=2, dash="solid"),
            *(rule(y=value, yref="y", color=palette.FAINT, layer="below") for _, value in rungs),
        ],
        annotations=[*rung_names, *([label()] if recorded else [])],
        legend={**legend("right")["legend"], "y": 0.45},
        legend2=legend("right")["legend"],
        hovermode="closest",
        uirevision=f"{M} {L} {H} {steps[-1] if len(steps) else 0}",
    )


def step_at(x: float) -> float:
    """The optimizer step at position `x` of the timeline's axis."""
    return max(x, 0.0) ** 2


def _ticks(last: int) -> dict[str, Any]:
    """Round steps, about a tenth of the axis apart."""
    unit = 10 ** max(math.floor(math.log10(max(last, 1))) - 2, 0)
    shown: list[int] = [0]
    for share in range(1, 11):
        step = round(last * (share / 10) ** 2 / unit) * unit if share < 10 else last
        if math.sqrt(step) - math.sqrt(shown[-1]) > 0.06 * math.sqrt(last):
            shown.append(int(step))
    return {"tickvals": [math.sqrt(step) for step in shown], "ticktext": [f"{step:,}" for step in shown]}


def _line(x: Sequence[float], y: Sequence[float], name: str, color: str, **more: Any) -> dict[str, Any]:
    roots, hover = (
        np.sqrt(np.asarray(x, dtype=np.float64)),
        f"{name} %{{y:.4f}} at step %{{customdata:,}}<extra></extra>",
    )
    return line(roots, y, name, color, hover=hover, customdata=numbers(x), meta={"x": numbers(x)}, **more)
