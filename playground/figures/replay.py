"""A run looked back at: losses above, what heads do below, on one axis of optimizer steps, with the moment marked.

The axis goes with the square root of the step, as the kept moments do: early steps change most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import palette
from .wire import axis, escaped, layout, numbers


def timeline(
    evaluations: Mapping[str, Sequence[float]],
    steps: Sequence[int],
    prompt_losses: np.ndarray,
    scores: np.ndarray,
    name: str,
    *,
    moment: int,
    chosen: tuple[int, int],
    rungs: Sequence[tuple[str, float]] = (),
    recorded: bool = False,
) -> dict[str, Any]:
    """Two panels: validation loss and the prompt's own; a line per head with its score of one habit.

    Args:
        evaluations: columns `step` and `val_loss` of the run's history; may be empty.
        steps: the M kept moments; prompt_losses: (M,) nats; scores: (M, L, H).
        moment: the step to mark; chosen: (layer, head) of the line to stress.

    A click's x is a square root: `step_at` makes it a step.
    """
    M, L, H = scores.shape
    lines = [
        _line(evaluations.get("step", ()), evaluations.get("val_loss", ()), "validation loss", palette.DENSE, 2.2),
        _line(steps, prompt_losses, "loss on this prompt", palette.FAINT, 1.6, dash="dot"),
    ]
    dashes = ("solid", "dash", "dot", "dashdot")
    for layer in range(L):
        for head in range(H):
            mine = (layer, head) == chosen
            color = palette.SCORES if mine else palette.OTHERS[(layer + 1) % len(palette.OTHERS)]
            line = _line(
                steps, scores[:, layer, head], f"L{layer} H{head}", color, 3.0 if mine else 1.4,
                dash="solid" if mine else dashes[head % len(dashes)],
            )  # fmt: skip
            lines.append({**line, "yaxis": "y2", "mode": "lines+markers" if mine else "lines",
                          "marker": {"size": 5}, "opacity": 1.0 if mine else 0.75,
                          "showlegend": mine or L * H <= 8})  # fmt: skip
    now = math.sqrt(moment)
    shapes = [
        {"type": "line", "xref": "x", "yref": "paper", "x0": now, "x1": now, "y0": 0, "y1": 1,
         "line": {"color": palette.HIGHLIGHT, "width": 2}},
        *({"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": value, "y1": value, "layer": "below",
           "line": {"color": palette.FAINT, "width": 1, "dash": "dash"}} for rung, value in rungs),
    ]  # fmt: skip
    notes = [
        {"text": escaped(rung), "xref": "paper", "yref": "y", "x": 1, "y": value, "xanchor": "right",
         "yanchor": "bottom", "showarrow": False, "font": {"size": 10, "color": palette.MUTED}}
        for rung, value in rungs
    ]  # fmt: skip
    if recorded:
        notes.append(
            {"text": "recorded", "xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor":
             "bottom", "yshift": 6, "showarrow": False, "font": {"size": 11, "color": palette.MUTED},
             "bgcolor": palette.BAND, "borderpad": 4}
        )  # fmt: skip
    return {
        "data": lines,
        "layout": layout(
            440,
            margin={"l": 52, "r": 12, "t": 40, "b": 40},
            narrow={"margin.l": 40, "legend.font.size": 9, "margin.t": 76},
            xaxis=axis("optimizer steps (early ones spread out)", anchor="y2", **_ticks(max([*steps, 1]))),
            yaxis=axis("nats per token", domain=[0.56, 1], rangemode="tozero", fixedrange=True),
            yaxis2=axis(name, domain=[0, 0.46], range=[-0.02, 1.02], fixedrange=True),
            shapes=shapes,
            annotations=notes,
            showlegend=True,
            legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom",
                    "font": {"size": 11, "color": palette.MUTED}},
            hovermode="closest",
            uirevision=f"{M} {L} {H} {steps[-1] if len(steps) else 0}",
        ),
    }  # fmt: skip


def step_at(x: float) -> float:
    """The optimizer step at this place of the timeline's axis."""
    return max(x, 0.0) ** 2


def describe_appearance(name: str, found: Any, last: int) -> str:
    """When a habit appeared; `found` is inspection.replay's Appearance or None."""
    if found is None:
        return f"No head ends with much of this habit ({name}) on this prompt."
    return (
        f"Head {found.head} of layer {found.layer} has most of this habit ({name}) in the end: {found.final:.2f}. It "
        f"is halfway there between step {found.before:,} ({found.score_before:.2f}) and step {found.after:,} "
        f"({found.score_after:.2f}) of {last:,}."
    )


def _ticks(last: int) -> dict[str, Any]:
    """Round steps that stand about a tenth of the axis apart."""
    unit = 10 ** max(math.floor(math.log10(max(last, 1))) - 2, 0)
    shown: list[int] = [0]
    for share in range(1, 11):
        step = round(last * (share / 10) ** 2 / unit) * unit if share < 10 else last
        if math.sqrt(step) - math.sqrt(shown[-1]) > 0.06 * math.sqrt(last):
            shown.append(int(step))
    return {"tickvals": [math.sqrt(step) for step in shown], "ticktext": [f"{step:,}" for step in shown]}


def _line(
    x: Sequence[float], y: Sequence[float], name: str, color: str, width: float, *, dash: str = "solid"
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": numbers(np.sqrt(np.asarray(x, dtype=np.float64))),
        "customdata": numbers(x),
        "y": numbers(y),
        "name": name,
        "line": {"color": color, "width": width, "dash": dash},
        "hovertemplate": f"{name} %{{y:.4f}} at step %{{customdata:,}}<extra></extra>",
    }
