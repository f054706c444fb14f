"""The timeline of a run: what heads attend to over the steps, with the chosen moment marked.

The snapshots stand equally far apart, as on the slider below it: early steps, which change most, are spread out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import palette
from .shapes import FIXED, Figure, axis, legend, line, lines, rule
from .wire import numbers

BESIDE = (44, 20)
"""Pixels to the left and to the right of the axis, at any width."""


def timeline(
    steps: Sequence[int],
    scores: np.ndarray,
    *,
    moment: int,
    chosen: tuple[int, int],
    rose: tuple[int, int] | None,
    height: int,
) -> Figure:
    """One line per head: its weight on one kind of token. The x of a click is a snapshot's index, or between two.

    Args:
        steps: the M snapshots; scores: (M, L, H).
        moment: index of the snapshot to mark; chosen: (layer, head) of the line to highlight.
        rose: the snapshots to shade, between which the highlighted line rose.
    """
    M, L, H = scores.shape
    curves = []
    for layer, head in np.ndindex(L, H):
        mine = (layer, head) == chosen
        look = {"width": 3.0, "marks": 5, "zorder": 1} if mine else {"width": 1.4, "showlegend": False}
        name, color = f"head {layer}.{head}", palette.SCORES if mine else palette.FAINT
        hover = f"{name} %{{y:.4f}} at step %{{customdata:,}}<extra></extra>"
        saved = {"customdata": numbers(steps), "meta": {"x": numbers(steps)}}
        curves.append(line(range(M), scores[:, layer, head], name, color, hover=hover, **saved, **look))
    if L * H > 1:  # a line of its own in the legend
        curves.append(line([0], [np.nan], "other heads", palette.FAINT, width=1.4))
    shade = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "fillcolor": palette.HIGHLIGHT, "opacity": 0.18}
    shade |= {"layer": "below", "line": {"width": 0}}
    ticks = np.unique(np.linspace(0, M - 1, 5).round().astype(int)).tolist()
    named = {"tickvals": ticks, "ticktext": [f"{steps[i]:,}" for i in ticks]}
    fixed = {"automargin": False, **FIXED}
    return lines(
        curves,
        height,
        axis(range=[0, M - 1], **named, **fixed),
        axis("mean weight", range=[-0.02, 1.02], nticks=3, **fixed),
        margin={"l": BESIDE[0], "r": BESIDE[1], "t": 30, "b": 22},
        narrow={"margin.l": BESIDE[0]},
        shapes=[
            *([{**shade, "x0": rose[0], "x1": rose[1]}] if rose else []),
            rule(x=moment, xref="x", color=palette.HIGHLIGHT, width=2, dash="solid"),
        ],
        legend=legend("right")["legend"],
        hovermode="closest",
        uirevision=f"{M} {L} {H} {steps[-1]}",
    )
