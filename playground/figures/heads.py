"""One number per head as a map: layers down, heads across."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..words.numbers import signed
from .attention import framed, written
from .shapes import UPSIDE_DOWN, Figure, axis, cells, heatmap
from .wire import escaped

NAMED = 5
"""Parts that are named at most where many share the first place."""
UNSEEN = 0.0001
"""Nats by which no prediction moves measurably: four decimals hardly show it."""


def head_map(values: np.ndarray, name: str, *, chosen: tuple[int, int] | None = None) -> Figure:
    """Scores (L, H) of 0 … 1 on a fixed scale, each written in its cell where there is room; NaN cells are blank.

    Args:
        name: what heads with a high score do, as in "look at the token before".
        chosen: (layer, head) to frame.
    """
    values = np.asarray(values, dtype=np.float64)
    layers, heads = values.shape
    trace = cells(
        values,
        f"layer %{{y}}, head %{{x}}<br>{escaped(name)}: %{{z:.4f}}",
        bar="score",
        ticks={"tickvals": [0, 0.5, 1]},
        gap=2,
        text=written(values.size),
    )
    return heatmap(
        trace,
        min(640, 90 + 36 * max(3, layers)),
        axis("head", dtick=1, showgrid=False),
        axis("layer", dtick=1, showgrid=False, **UPSIDE_DOWN),
        frames=framed(chosen),
        margin={"l": 52, "r": 8, "t": 8, "b": 44},
        uirevision=f"{layers} {heads}",
    )


def describe_head_map(values: np.ndarray, name: str, enough: float = 0.4) -> str:
    """How many heads do it with that score, and which does it most."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).any():
        return f"Too few of these tokens repeat to measure which heads {name}."
    layer, head = np.unravel_index(int(np.nanargmax(values)), values.shape)
    many = int(np.nansum(values >= enough))
    return (
        f"Heads that {name} with a score of {enough:.2f} or more: {many} of {values.size}; most of all layer {layer}, "
        f"head {head} ({values[layer, head]:.2f})."
    )


def describe_worth(values: np.ndarray, margins: np.ndarray | None, unit: str, first: np.ndarray | None = None) -> str:
    """The most important head, and how many matter, or harm, by more than the interval if there is one.

    Args:
        first: (L, H) that head, and those too close to rank.
    """
    values = np.asarray(values, dtype=np.float64)
    layer, head = np.unravel_index(int(values.argmax()), values.shape)
    if margins is None:
        if values.max() < UNSEEN:
            return f"No single head matters here: none changes the result by {UNSEEN:g} {unit}."
        return f"Most important: layer {layer}, head {head}, with {values[layer, head]:.4f} {unit}."
    clear = int((values > margins).sum())
    if not clear:
        layer, head = np.unravel_index(int(np.abs(values).argmax()), values.shape)
    size = f"layer {layer}, head {head}, by {signed(values[layer, head], 4)} ± {margins[layer, head]:.4f} {unit}"
    better = better_without(values, margins, unit)
    if not clear:
        return f"No single head matters by more than its interval. The largest difference: {size}.{better}"
    many = f"{clear} of {values.size} matter{'s' * (clear == 1)} by more than the interval.{better}"
    if first is not None and np.sum(first) > 1 and np.isfinite(margins).all():
        size = f"{on_one_level(values, margins, first)} {unit}"
    return f"Most important: {size}. {many}"


def better_without(values: np.ndarray, margins: np.ndarray, unit: str) -> str:
    """A further sentence where the model predicts better without some heads (L, H), beyond the interval; else ""."""
    clear = values < -margins
    if not clear.any():
        return ""
    layer, head = np.unravel_index(int(np.where(clear, values, np.inf).argmin()), values.shape)
    each = ", one at a time," if clear.sum() > 1 else ""
    return (
        f" Without {clear.sum()} of {values.size}{each} the model predicts better. The largest effect: "
        f"layer {layer}, head {head}, by {-values[layer, head]:.4f} ± {margins[layer, head]:.4f} {unit}."
    )


def on_one_level(
    values: np.ndarray,
    margins: np.ndarray,
    first: np.ndarray,
    layers: Sequence[int] | None = None,
    kind: str = "head",
) -> str:
    """The parts that share the first place (L, H), the largest number first, and their numbers in the same order.

    Args:
        layers: their numbers, where the rows are not all layers.
    """
    at = sorted(zip(*np.nonzero(first)), key=lambda at: -values[at])
    rows = {row: [each for each in at if each[0] == row] for row in dict.fromkeys(row for row, _ in at)}
    named = [
        f"{kind}{'s' * (len(own) > 1)} {all_of([str(column) for _, column in own])} of layer "
        f"{row if layers is None else layers[row]}"
        for row, own in (rows if len(at) <= NAMED else {at[0][0]: at[:1]}).items()
    ]
    sizes = [f"{signed(values[each], 4)} ± {margins[each]:.4f}" for own in rows.values() for each in own]
    if len(at) <= NAMED:
        return f"{all_of(named)}, too close to rank. In this order: {all_of(sizes)}"
    return f"{named[0]}, too close to rank with {len(at) - 1} others: {sizes[0]}"


def all_of(words: Sequence[str]) -> str:
    """As in "1, 2 and 3"."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
