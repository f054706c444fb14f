"""Numbers of the parts of every layer, written in a map: what each is worth, what each adds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..words.numbers import signed
from . import palette
from .attention import framed
from .heads import better_without, on_one_level
from .shapes import FIXED, Figure, cells, heatmap, layers_down, names, reach
from .wire import numbers


def part_map(values: np.ndarray, columns: Sequence[str], hover: str, *, mark: tuple[int, int] | None = None) -> Figure:
    """Signed numbers of the parts of every layer (L, C), written in their cells; a click gives [layer, column].

    Colour goes with the square root, so that small numbers can be told apart beside large ones.

    Args:
        hover: plotly's template for a cell, in which %{customdata} is the number.
        mark: (layer, column) of a cell to frame.
    """
    values = np.asarray(values, dtype=np.float64)
    L, C = values.shape
    shade = np.sign(values) * np.sqrt(np.abs(values))
    limit = reach(shade)
    written = [[signed(value, 3 if abs(value) < 0.995 else 2) for value in row] for row in values]
    trace = cells(
        shade,
        f"%{{y}}, %{{x}}<br>{hover}",
        scale=palette.DIVERGING_SCALE,
        ends=(-limit, limit),
        gap=2,
        text=written if C <= 16 else None,
        customdata=numbers(values),
        saved={"": values},
    )
    return heatmap(
        trace,
        80 + 34 * max(2, L),
        names(columns, side="top", **FIXED),
        layers_down(range(L)),
        frames=framed(mark),
        uirevision=f"{L} {C}",
    )


def removal_figure(heads: np.ndarray, attention: np.ndarray, feedforward: np.ndarray) -> Figure:
    """Costs in nats of switching parts off: layer × (each head, all attention, feed-forward)."""
    values = np.column_stack([heads, attention, feedforward])
    columns = [*(f"head {head}" for head in range(np.shape(heads)[1])), "attention", "feed-forward"]
    return part_map(values, columns, "without it: %{customdata:+.5f} nats per token")


def describe_removal(heads: np.ndarray, margins: np.ndarray, first: np.ndarray, before: float) -> str:
    """The head that matters most, or all that may, and how many make no difference: their 95 % interval holds zero."""
    heads, margins = np.asarray(heads, dtype=np.float64), np.asarray(margins, dtype=np.float64)
    layer, head = (int(i) for i in np.unravel_index(int(heads.argmax()), heads.shape))
    words = f"With all parts, the loss is {before:.4f}."
    size = signed(heads[layer, head], 4, plus=True)
    most = f"{words} The most important head is head {head} of layer {layer}: without it {size}"
    if not np.isfinite(margins).all():
        if size == signed(0.0, 4, plus=True) or heads[layer, head] < 0:
            least = signed(heads.min(), 4, plus=True)
            return f"{words} No single head matters here: without one the loss changes by {least} to {size} nats."
        return f"{most} nats. One window is too little to rule out chance."
    idle = int((np.abs(heads) <= margins).sum())
    make = "makes" if idle == 1 else "make"
    none = f". {idle} of {heads.size} heads {make} no measurable difference" if idle else ""
    better = better_without(heads, margins, "nats")
    if not (heads > margins).any():
        return f"{words} No single head makes a measurable difference.{better}"
    if first.sum() > 1:
        return f"{words} Most important: {on_one_level(heads, margins, first)} nats{none}.{better}"
    return f"{most} nats (± {margins[layer, head]:.4f}){none}.{better}"


def describe_sublayers(heads: np.ndarray, sublayers: np.ndarray, margins: np.ndarray) -> str:
    """The attention or feed-forward layer (L, 2) that has the largest number, where no head's (L, H) is larger."""
    sublayers = np.asarray(sublayers, dtype=np.float64)
    layer, which = (int(i) for i in np.unravel_index(int(sublayers.argmax()), sublayers.shape))
    most, margin = sublayers[layer, which], margins[layer, which]
    if round(most - np.max(heads), 4) <= 0 or (np.isfinite(margin) and most <= margin):
        return ""
    name = ("attention", "the MLP")[which]
    interval = f" (± {margin:.4f})" if np.isfinite(margin) else ""
    size = f"{signed(most, 4, plus=True)} nats{interval}"
    return f" The most important part is {name} of layer {layer}: without it {size}."
