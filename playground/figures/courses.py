"""Growing lines: the bits in a game, milliseconds per token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..words.baselines import title
from . import palette
from .shapes import Figure, axis, legend, line, lines, note, rule

_PLAYERS = {
    "you": (palette.INK, "solid"), "bigram": (palette.FAINT, "dash"), "floor": (palette.HIGHLIGHT, "dot")
}  # fmt: skip


def bits_curve(bits: Mapping[str, np.ndarray], *, kind: str = "dense", height: int = 240) -> Figure:
    """Bits paid so far by each player (you, model, bigram, floor), from 0 before the first bet."""
    traces = []
    for player, costs in bits.items():
        total = np.concatenate(([0.0], np.cumsum(costs)))
        color, dash = _PLAYERS.get(player, (palette.of_kind(kind), "solid"))
        width = 2.8 if player == "you" else 2
        traces.append(
            line(range(len(total)), total, title(player), color, dash=dash, width=width, hover="%{y:.2f} bits")
        )
    return lines(
        traces, height, axis("bets", rangemode="tozero", dtick=5), axis("bits paid so far", rangemode="tozero")
    )


def token_times(
    lengths: Sequence[int], cached: Sequence[float], plain: Sequence[float], *, context: int | None = None
) -> Figure:
    """Milliseconds per token against the sequence's length, with the KV cache (solid) and without (dashed).

    A line marks where the model's `context` is full.
    """
    full: dict[str, Any] = {}
    if context is not None and len(lengths) and lengths[-1] > context:
        place = {"x": context, "xref": "x", "xanchor": "right", "yanchor": "top"}
        said = note("context full", **place, bgcolor=palette.BAND, borderpad=2)
        full = {"shapes": [rule(x=context, dash="dot")], "annotations": [said]}
    return lines(
        [
            line(lengths, plain, "without the cache", palette.MUTED, dash="dash", hover="%{y:.2f} ms"),
            line(lengths, cached, "with the cache", palette.DENSE, hover="%{y:.2f} ms"),
        ],
        280,
        axis("tokens so far"),
        axis("ms per token", rangemode="tozero"),
        margin={"l": 52, "r": 12, "t": 30, "b": 44},
        **legend(traceorder="reversed"),
        **full,
    )
