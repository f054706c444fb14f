"""How much of what a model writes is right, along its run: the moment when a skill appears."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import palette
from .shapes import Figure, axis, line, lines

LEARNED = 0.5
"""Share from which a skill is said to be there."""


def skill_curve(
    steps: Sequence[int],
    shares: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    what: str,
    *,
    planned_steps: int | None = None,
    kind: str = "dense",
) -> Figure:
    """The share right (0 … 1) at each step, with its 95 % interval as a bar through the point."""
    share, ends = np.asarray(shares, dtype=np.float64), np.asarray(intervals, dtype=np.float64).reshape(-1, 2)
    color = palette.MOE if kind == "moe" else palette.DENSE
    whiskers = {
        "type": "data",
        "symmetric": False,
        "array": [round(float(x), 4) for x in 100 * (ends[:, 1] - share)],
        "arrayminus": [round(float(x), 4) for x in 100 * (share - ends[:, 0])],
        "color": color,
        "thickness": 1,
        "width": 3,
    }
    # dotted: between two points nothing was written, so nothing is known
    trace = line(steps, 100 * share, what, color, width=1, dash="dot", marks=6, hover="%{y:.0f} %", error_y=whiskers)
    x = axis("optimizer steps", **({"range": [0, 1.03 * planned_steps]} if planned_steps else {}))
    y = axis("% right", range=[-4, 104], tickvals=[0, 50, 100])
    return lines([trace], 200, x, y, margin={"l": 52, "r": 20, "t": 10, "b": 44}, showlegend=False)


def describe_skill(steps: Sequence[int], shares: Sequence[float], intervals: Sequence[tuple[float, float]]) -> str:
    """When the skill appeared, as far as these few texts can tell."""
    if not steps:
        return ""
    there = [low > LEARNED for low, _ in intervals]
    lacking = [high < LEARNED for _, high in intervals]
    at, share = f"at step {steps[-1]:,}", f"{100 * shares[-1]:.0f} %"
    now = f"{share} right {at}"
    if there[-1]:
        first = next(i for i in range(len(steps)) if all(not no for no in lacking[i:]) and there[i])
        before = [i for i in range(first) if lacking[i]]
        if before:
            unclear = " (unclear in between)" if before[-1] + 1 < first else ""
            return f"The skill appeared between steps {steps[before[-1]]:,} and {steps[first]:,}{unclear}: {now}."
        return f"The skill is there: {now}."
    if lacking[-1]:
        return f"Less than half was right {at}: {share}."
    return f"About half was right {at}, too close to call: {share}."
