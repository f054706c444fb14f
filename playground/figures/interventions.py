"""Interventions as pictures: the map of patches, strength against effect and loss, and a circuit as a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..interventions.circuit import Circuit, Node
from ..interventions.patching import PatchMap
from ..interventions.steering import SteeringCurve
from ..words.interventions import PATTERNS, node_name, part_name
from ..words.numbers import signed
from . import palette
from .shapes import FIXED, UPSIDE_DOWN, Figure, axis, cells, figure, frame, heatmap, line, lines, names, reach, slanted
from .wire import escaped

_WRITTEN = 14
"""Tokens up to which numbers stand in the cells."""
_SHOWN = 0.02
"""Share of a logit difference from which an edge is drawn."""
_NARROWEST, _STAGE = 300, 96
"""Pixels: the width of the circuit on a phone, and the height of one of its stages."""
_PART, _NUMBER = (92, 58), (40, 18)
"""Pixels: width and height of a part's box and of a link's number."""


def patch_picture(found: PatchMap, labels: Sequence[str], part: slice, kept: Sequence[tuple[int, int]] = ()) -> Figure:
    """Row × token: the effect in nats on the logit difference; a click gives [row, column].

    Args:
        labels: place and text of all tokens, of which `part` is drawn.
        kept: (row, token) of patches to frame.
    """
    values = found.effects[:, part]
    limit = reach(found.effects)
    rows = [part_name(found.part, *row) for row in found.rows]
    trace = cells(
        values,
        "%{y}, at %{x}<br>logit difference %{z:+.3f} nats",
        scale=palette.DIVERGING_SCALE,
        ends=(-limit, limit),
        bar="nats",
        text=[[signed(value, 1) for value in row] for row in values] if values.shape[1] <= _WRITTEN else None,
    )
    return heatmap(
        trace,
        max(190, 110 + (18 if len(rows) > 8 else 28) * len(rows)),
        slanted(labels[part]),
        names(rows, length=24, **UPSIDE_DOWN, **FIXED),
        frames=[frame(row, place - part.start) for row, place in kept if part.start <= place < part.stop],
        uirevision=f"{found.part} {values.shape}",
    )


def steering_picture(curve: SteeringCurve) -> Figure:
    """Strength against the logit difference (left) and the validation loss (right)."""
    effect = line(curve.strengths, curve.effects, "logit difference", palette.INK, marks=6)
    loss = line(curve.strengths, curve.losses, "validation loss", palette.HIGHLIGHT, dash="dash", marks=6, yaxis="y2")
    right = axis("loss, nats per token", overlaying="y", side="right", showgrid=False, tickmode="auto")
    left, margin = axis("logit difference, nats"), {"l": 52, "r": 56, "t": 36, "b": 44}
    return lines([effect, loss], 280, axis("strength"), left, yaxis2=right, margin=margin)


def circuit_picture(found: Circuit, patterns: Mapping[Node, str]) -> Figure:
    """The parts, first layer at the bottom, answer on top; each part and link says which share is lost without it.

    Args:
        patterns: of heads, as `interventions.circuit.patterns_of` finds them.
    """
    stages = sorted({_stage(node) for node in found.nodes})
    places: dict[Node | None, tuple[float, float]] = {None: (0.0, len(stages))}
    for height, stage in enumerate(stages):
        own = [node for node in found.nodes if _stage(node) == stage]
        shift = 0.5 * (-1) ** height if len(own) == 1 else 0.0  # so that no link runs through a part
        places |= {node: (i - (len(own) - 1) / 2 + shift, height) for i, node in enumerate(own)}
    shown = [edge for edge in found.edges if edge.share >= _SHOWN]
    notes = [_arrow(places[edge.sender], places[edge.receiver], 1 + 5 * min(edge.share, 1.0)) for edge in shown]
    wide = max(abs(x) for x, _ in places.values()) + 0.5
    spots = _spots([(places[edge.sender], places[edge.receiver]) for edge in shown], list(places.values()), wide)
    notes += [
        {
            **{"x": float(spot[0]), "y": float(spot[1]), "text": f"{100 * edge.share:.0f} %", "showarrow": False},
            **{"bgcolor": palette.PAPER, "font": {"size": 11, "color": palette.MUTED}},
        }
        for edge, spot in zip(shown, spots)
        if spot is not None
    ]
    for node, (x, y) in places.items():
        lost = "" if node is None else f"{100 * found.lost[node]:.0f} %"
        words = (f"<b>{escaped(node_name(node))}</b>", PATTERNS.get(patterns.get(node, ""), ""), lost)
        notes.append(
            {
                **{"x": x, "y": y, "text": "<br>".join(filter(None, words)), "showarrow": False},
                **{"bgcolor": palette.BAND, "bordercolor": palette.FAINT, "borderpad": 4},
                "font": {"size": 12, "color": palette.INK},
            }
        )
    return figure(
        [{"type": "scatter", "x": [0], "y": [0], "mode": "none", "hoverinfo": "skip"}],
        120 + _STAGE * len(stages),
        xaxis=axis(range=[-wide, wide], showgrid=False, showticklabels=False, **FIXED),
        yaxis=axis(range=[-0.6, len(stages) + 0.5], showgrid=False, showticklabels=False, **FIXED),
        annotations=notes,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
    )


def _arrow(start: tuple[float, float], end: tuple[float, float], width: float) -> dict[str, Any]:
    """From one part's box to another's."""
    (ax, ay), (x, y) = start, end
    return {
        **{"x": x, "y": y, "ax": ax, "ay": ay, "xref": "x", "yref": "y", "axref": "x", "ayref": "y", "text": ""},
        **{"showarrow": True, "arrowhead": 2, "arrowwidth": width, "arrowsize": max(0.5, 2 / width)},
        **{"arrowcolor": palette.FAINT, "standoff": _PART[1] / 2 + 4, "startstandoff": _PART[1] / 2},
    }


def _spots(
    links: list[tuple[tuple[float, float], tuple[float, float]]], parts: list[tuple[float, float]], wide: float
) -> list[np.ndarray | None]:
    """Where on its link each number stands; None where none is free of parts and of other numbers, even on a phone."""
    unit = np.array([_NARROWEST / (2 * wide), _STAGE])  # pixels
    taken = [(np.multiply(part, unit), _PART) for part in parts]
    spots: list[np.ndarray | None] = []
    for start, end in links:
        on_link = (np.add(start, np.multiply(np.subtract(end, start), at)) for at in (0.5, 0.4, 0.6, 0.3, 0.7, 0.25))
        room = lambda spot: all(  # noqa: E731
            (np.abs(spot * unit - middle) > (np.add(size, _NUMBER) / 2)).any() for middle, size in taken
        )
        spots.append(next(filter(room, on_link), None))
        if spots[-1] is not None:
            taken.append((spots[-1] * unit, _NUMBER))
    return spots


def _stage(node: Node) -> int:
    return 2 * node.layer + (node.head is None)
