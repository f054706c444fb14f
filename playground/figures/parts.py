"""Maps with a number for each part of every layer, such as its cost or what it adds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..words.numbers import signed
from . import palette
from .shapes import FIXED, Figure, cells, heatmap, layers_down, names, reach
from .wire import numbers


def part_map(
    values: np.ndarray,
    columns: Sequence[str],
    hover: str,
    *,
    margins: np.ndarray | None = None,
    layers: Sequence[int] | None = None,
) -> Figure:
    """Signed numbers for the parts of every layer (L, C), written in the cells; a click gives [layer, column].

    Colour follows the square root, so that small numbers can be told apart beside large ones.

    Args:
        hover: plotly's template for a cell, in which %{customdata} is the number.
        margins: (L, C) half the widths of intervals; a number that lies within its own is written in brackets.
        layers: the layers' numbers, if the rows are not all layers.
    """
    values = np.asarray(values, dtype=np.float64)
    L, C = values.shape
    shade = np.sign(values) * np.sqrt(np.abs(values))
    limit = reach(shade)
    idle = np.zeros((L, C), bool) if margins is None else np.abs(values) <= margins
    written = [[signed(value, 3 if abs(value) < 0.995 else 2) for value in row] for row in values]
    written = [[f"({text})" if no else text for text, no in zip(*rows)] for rows in zip(written, idle)]
    trace = cells(
        shade,
        f"%{{y}}, %{{x}}<br>{hover}",
        scale=palette.DIVERGING_SCALE,
        ends=(-limit, limit),
        gap=2,
        text=written if C <= 16 else None,
        customdata=numbers(values),
        saved={"": values} | ({} if margins is None else {"±": margins}),
    )
    return heatmap(
        trace,
        80 + 34 * max(2, L),
        names(columns, side="top", **FIXED),
        layers_down(range(L) if layers is None else layers),
        uirevision=f"{L} {C}",
    )
