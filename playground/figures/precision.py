"""The weights of one matrix on the levels of int8."""

from __future__ import annotations

from collections.abc import Sequence

from ..words.numbers import signed
from . import palette
from .shapes import Figure, axis, bar, figure, note, rule


def level_counts(counts: Sequence[int], chosen: int) -> Figure:
    """How many weights lie on each level from −127 to 127; a line marks the receipt's level."""
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
