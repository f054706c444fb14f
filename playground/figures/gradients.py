"""Gradient norms by layer over training: which parts are being pushed, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .shapes import FIXED, UPSIDE_DOWN, Figure, axis, cells, heatmap
from .wire import escaped, numbers


def gradient_map(records: Sequence[Mapping[str, Any]]) -> Figure:
    """Heat map, part of the model × step, colour on a log scale; records are `History.gradients` ({step, norms})."""
    parts, steps, norms = _table(records)
    with np.errstate(divide="ignore"):
        exponents = np.log10(norms)
    finite = exponents[np.isfinite(exponents)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (-1.0, 1.0)
    if high - low < 0.1:
        low, high = low - 0.5, high + 0.5
    ticks = [t for t in range(-12, 13) if low <= t <= high] or [low, high]
    trace = cells(
        exponents.reshape(len(parts), len(steps)),
        "%{y}<br>step %{x:,.0f}: gradient norm %{customdata:.4g}",
        ends=(low, high),
        bar="norm",
        ticks={"tickvals": ticks, "ticktext": [f"{10**t:.3g}" for t in ticks]},
        gap=0,
        ygap=2,
        x=numbers(steps),
        y=[escaped(part) for part in parts],
        customdata=numbers(norms.reshape(len(parts), len(steps))),
        saved={"gradient norm": norms.reshape(len(parts), len(steps))},
    )
    return heatmap(
        trace,
        84 + 24 * max(1, len(parts)),
        axis("optimizer steps", showgrid=False),
        axis(**UPSIDE_DOWN, **FIXED, showgrid=False, ticklabelstandoff=6, type="category"),
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        narrow={"margin.r": 4},
    )


def describe_gradients(records: Sequence[Mapping[str, Any]]) -> str:
    """Which part is pushed hardest now, and how the whole changed since the start."""
    parts, steps, norms = _table(records)
    if not parts or not steps:
        return "No gradients have been measured yet."
    last = norms[:, -1]
    if not np.isfinite(last).any():
        return f"The gradients at step {steps[-1]:,} are not numbers: the run diverged."
    hardest = int(np.nanargmax(last))
    words = f"At step {steps[-1]:,} the gradient is longest in {parts[hardest]} ({last[hardest]:.2g})"
    gentlest = int(np.nanargmin(np.where(last > 0, last, np.nan))) if (last > 0).any() else hardest
    if gentlest != hardest:
        words += f", {last[hardest] / last[gentlest]:.0f} times as long as in {parts[gentlest]}"
    whole = np.sqrt(np.nansum(norms**2, axis=0))
    if len(steps) > 1 and whole[0] > 0 and np.isfinite(whole[-1]):
        ratio = whole[-1] / whole[0]
        words += f". Over all parts it is now {ratio:.2g} times that of step {steps[0]:,}"
    return words + "."


def _table(records: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[int], np.ndarray]:
    """Part names in order of appearance, steps, and norms (parts, steps); NaN where a part was not measured."""
    parts = list(dict.fromkeys(name for record in records for name in record["norms"]))
    steps = [int(record["step"]) for record in records]
    norms = np.array([[record["norms"].get(part, np.nan) for record in records] for part in parts], dtype=np.float64)
    return parts, steps, norms.reshape(len(parts), len(steps))
