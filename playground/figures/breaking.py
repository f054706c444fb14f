"""Pictures of breaking a mixture: what each expert is worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..words.numbers import signed
from . import palette
from .heads import on_one_level
from .shapes import Figure, cells, counted, heatmap, layers_down


def cost_map(costs: np.ndarray, margins: np.ndarray, layers: Sequence[int], plain: float) -> Figure:
    """By how many nats per token the loss rises when one expert is switched off (L, E); a click is that expert.

    Args:
        margins: (L, E) half the widths of the 95 % intervals; what lies within its own is written in brackets.
    """
    L, E = costs.shape
    limit = max(float(np.abs(costs).max()), 1e-6)
    written = [
        [_within(signed(cost, 3 if abs(cost) < 0.095 else 2), abs(cost) <= margin) for cost, margin in zip(*rows)]
        for rows in zip(costs.tolist(), margins.tolist())
    ]
    hover = [[f"± {margin:.4f}" if np.isfinite(margin) else "" for margin in row] for row in margins.tolist()]
    trace = cells(
        costs,
        "%{y}, expert %{x}<br>loss rises by %{z:.4f} %{customdata}",
        scale=palette.DIVERGING_SCALE,
        ends=(-limit, limit),
        gap=2,
        bar="nats",
        text=written if E <= 16 else None,
        customdata=hover,
    )
    return heatmap(
        trace,
        76 + 36 * L,
        counted(E, "expert switched off"),
        layers_down(layers),
        margin={"l": 8, "r": 8, "t": 8, "b": 36},
        uirevision=f"{L} {E} {plain}",
    )


def describe_costs(
    costs: np.ndarray, margins: np.ndarray, layers: Sequence[int], plain: float, judged: str, first: np.ndarray
) -> str:
    """The dearest expert with its interval, or all that may be, and how many make no measurable difference."""
    i, e = np.unravel_index(int(costs.argmax()), costs.shape)
    missed = f"expert {e} of layer {layers[i]}: {signed(costs[i, e], 4)}"
    if np.isfinite(margins).all() and first.sum() > 1:
        missed = on_one_level(costs, margins, first, layers, "expert")
    elif np.isfinite(margins[i, e]):
        missed += f" ± {margins[i, e]:.4f}"
    if np.isfinite(margins).all() and not (costs > margins).any():
        same = "Switching off any one expert makes no measurable difference"
        return f"{same} on {judged}: the loss is {plain:.4f} with all."
    idle = int((np.abs(costs) <= margins).sum())
    none = f" {idle} of {costs.size} make no measurable difference (in brackets)." if idle else ""
    return (
        f"The loss is {plain:.4f} with all experts, on {judged}. It rises most without {missed} nats per token.{none}"
    )


def _within(cost: str, idle: bool) -> str:
    return f"({cost})" if idle else cost
