"""What the bets of a game have cost, player by player, as lines that grow with every token."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from . import palette
from .shapes import Figure, axis, line, lines

_DASHES = {"bigram": "dash", "floor": "dot"}
NAMES = {"floor": "best possible"}
"""What the picture calls a player, where it is not the player's name."""


def bits_curve(bits: Mapping[str, np.ndarray], *, kind: str = "dense", height: int = 240) -> Figure:
    """Bits paid so far by each player (you, model, bigram, floor), from 0 before the first bet."""
    colors = {"you": palette.INK, "bigram": palette.FAINT, "floor": palette.HIGHLIGHT}
    traces = []
    for player, costs in bits.items():
        total = np.concatenate(([0.0], np.cumsum(costs)))
        color = colors.get(player, palette.MOE if kind == "moe" else palette.DENSE)
        dash, width = _DASHES.get(player, "solid"), 2.8 if player == "you" else 2
        name = NAMES.get(player, player)
        traces.append(line(range(len(total)), total, name, color, dash=dash, width=width, hover="%{y:.2f} bits"))
    return lines(
        traces, height, axis("bets", rangemode="tozero", dtick=5), axis("bits paid so far", rangemode="tozero")
    )


def describe_bits(bits: Mapping[str, np.ndarray]) -> str:
    """Who has paid what so far, the least first."""
    totals = sorted((float(np.sum(costs)), NAMES.get(player, player)) for player, costs in bits.items())
    n = len(next(iter(bits.values()), ()))
    if not n:
        return ""
    said = ", ".join(f"{player} {total:.1f}" for total, player in totals)
    bets = f"{n} bets" if n > 1 else "1 bet"
    return f"Bits paid in {bets}, the least first: {said}."
