"""The weights of one matrix on the levels of int8."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..words.numbers import signed
from . import palette
from .shapes import Figure, axis, bar, figure, note, rule


def level_counts(counts: Sequence[int], chosen: int) -> Figure:
    """How many weights lie on each level from −127 to 127; a line marks the level of the receipt."""
    levels = list(range(-127, 128))
    hover = "level %{x}: %{y:,} weights<extra></extra>"
    words = note(
        f" level {signed(chosen, 0)} of the receipt ",
        x=chosen,
        xref="x",
        y=1.0,
        xanchor="left" if chosen < 40 else "right",
    )
    return figure(
        [bar(list(counts), levels, palette.MUTED, hover)],
        260,
        margin={"l": 56, "r": 12, "t": 30, "b": 44},
        bargap=0.1,
        xaxis=axis("level: weight ÷ its row's scale, rounded", range=[-130, 130]),
        yaxis=axis("weights", rangemode="tozero"),
        shapes=[rule(x=chosen, dash="dot")],
        annotations=[words],
    )


def describe_level_counts(name: str, shape: Sequence[int], counts: Sequence[int], middle_half: int) -> str:
    """Which matrix it is, how much of the range its weights use, and what of it nothing uses."""
    empty = int((np.asarray(counts) == 0).sum())
    rows, columns = shape
    words = (
        f"{name}: {rows:,} × {columns:,} weights, each row with 255 levels of its own, from minus its largest weight "
        f"to plus. Half of all weights lie between levels −{middle_half} and {middle_half}"
    )
    words += f"; {empty} of the levels hold{'s' * (empty == 1)} none." if empty else "; no level is empty."
    ends = int(counts[0] + counts[-1])
    return f"{words} At the two ends lie the rows' largest weights and what rounds to the same level: {ends:,} in all."
