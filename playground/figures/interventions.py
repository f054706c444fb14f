"""Interventions as pictures: the map of patches, strength against effect and loss, and a circuit as a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..interventions.circuit import Circuit, Edge, Node
from ..interventions.patching import PatchMap
from ..interventions.steering import SteeringCurve
from ..words.interventions import node_name, part_name
from ..words.numbers import signed
from . import palette
from .shapes import FIXED, UPSIDE_DOWN, Figure, axis, cells, figure, frame, heatmap, line, lines, names, reach, slanted
from .wire import escaped, shortened

_WRITTEN = 14
"""Up to this many tokens, the cells show numbers."""
_BESIDE, _TOUCHED = 70, 22
"""Pixels beside the cells of a map, and the width of each, on a phone, where a map may be wider than the window."""
_ABOVE = {
    **{"orientation": "h", "len": 200, "lenmode": "pixels", "xpad": 0, "ypad": 0},
    **{"x": 0, "xanchor": "left", "y": 1.1, "yanchor": "bottom"},
}
"""Where a map's colour bar stands: in sight even if the map goes on to the right."""
_NARROWEST, _STAGE = 300, 62
"""Pixels: the width of a circuit on a phone, and the height of each stage."""
_PART = (66, 44)
"""Pixels: width and height of a part's box."""
_WIDE = 2
"""Stages from the middle of a wide circuit to its side: more would only lengthen the arrows."""
_UNIT = (160, _STAGE)
"""Width and height of a stage in pixels, if there is room."""
_ALONG = np.linspace(0.1, 0.9, 25)
"""Points of a link that should lie beside all parts."""


def patch_picture(
    found: PatchMap,
    labels: Sequence[str],
    part: slice,
    answers: tuple[str, str],
    framed: Sequence[tuple[int, int]],
) -> Figure:
    """Row × token: the effect in nats on the lead; a click gives [row, column].

    Args:
        labels: place and text of all tokens, of which `part` is drawn.
        answers: the two whose logits are compared.
        framed: (row, token) of the cells to frame.
    """
    values = found.effects[:, part]
    limit = reach(found.effects)
    rows = [part_name(found.part, *row) for row in found.rows]
    answer, foil = (escaped(shortened(each, 12)) for each in answers)
    narrow = _BESIDE + _TOUCHED * values.shape[1]
    trace = cells(
        values,
        "%{y}, at %{x}<br>changes the lead by %{customdata} nats",
        scale=palette.DIVERGING_SCALE,
        ends=(-limit, limit),
        bar=f"change in lead of “{answer}” over “{foil}”, nats",
        ticks=_ABOVE,
        customdata=[[signed(value, 3) for value in row] for row in values],
        text=[[signed(value, 1) for value in row] for row in values] if values.shape[1] <= _WRITTEN else None,
    )
    return heatmap(
        trace,
        max(210, 130 + (18 if len(rows) > 8 else 28) * len(rows)),
        slanted(labels[part]),
        names(rows, length=24, **UPSIDE_DOWN, **FIXED),
        frames=[frame(row, place - part.start) for row, place in framed if part.start <= place < part.stop],
        uirevision=f"{found.part} {values.shape}",
        narrow={"width": narrow} if narrow > _NARROWEST else None,
    )


def steering_picture(curve: SteeringCurve, answer: str, foil: str) -> Figure:
    """Strength against the lead of one answer over the other (left) and the validation loss (right)."""
    effect = line(curve.strengths, curve.effects, "logit difference", palette.INK, marks=6)
    loss = line(curve.strengths, curve.losses, "validation loss", palette.HIGHLIGHT, dash="dash", marks=6, yaxis="y2")
    right = axis("loss, nats per token", overlaying="y", side="right", showgrid=False, tickmode="auto")
    left = axis(f"lead of “{escaped(answer)}” over “{escaped(foil)}”, nats")
    margin = {"l": 52, "r": 56, "t": 36, "b": 44}
    return lines([effect, loss], 280, axis("strength"), left, yaxis2=right, margin=margin)


def circuit_picture(found: Circuit, answer: str) -> Figure:
    """The circuit, first layer at the bottom, answer on top; a click gives the index of a head among its heads.

    Each part shows its share when patched, and links are as wide as their shares.
    """
    stages = sorted({_stage(node) for node in found.drawn})
    by_stage = [[node for node in found.drawn if _stage(node) == stage] for stage in stages]
    links = [edge for edge in found.links if edge.sender in found.drawn]
    places = _laid_out(by_stage, links)
    words = {node: _words(node, found, answer) for node in places}
    notes = [_arrow(places[edge.sender], places[edge.receiver], edge.share, words[edge.receiver]) for edge in links]
    box = {"bgcolor": palette.BAND, "borderpad": 6, "showarrow": False, "font": {"size": 12, "color": palette.INK}}
    wide, heads = _half_width(places), found.heads
    notes += [{"x": x, "y": y, "text": words[node], **box} for node, (x, y) in places.items()]
    under = {
        "type": "scatter",
        "mode": "markers",
        **{name: [places[node][i] for node in heads] for i, name in enumerate("xy")},
        "marker": {"size": _PART[1], "symbol": "square", "opacity": 0},
        "text": [f"Show {node_name(node)}" for node in heads],
        "hoverinfo": "text",
    }
    return figure(
        [under],
        16 + round(_STAGE * (len(stages) + 0.75)),
        xaxis=axis(range=[-max(wide, _WIDE), max(wide, _WIDE)], showgrid=False, showticklabels=False, **FIXED),
        yaxis=axis(range=[-0.45, len(stages) + 0.3], showgrid=False, showticklabels=False, **FIXED),
        annotations=notes,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        narrow={"xaxis.range": [-wide, wide]},
    )


def _words(node: Node | None, found: Circuit, answer: str) -> str:
    """The words in a part's box: its name, and its share when patched."""
    if node is None:
        return f"<b>“{escaped(answer)}”</b>"
    return f"<b>{node_name(node)}</b><br>{signed(100 * min(found.lost[node], 1.0), 0)}\xa0%"


def _arrow(start: tuple[float, float], end: tuple[float, float], share: float, words: str) -> dict[str, Any]:
    """An arrow from under one part's box to the edge of another's, which holds these words."""
    (ax, ay), (x, y) = start, end
    lines, width = words.split("<br>"), 1.5 + 3 * max(0.0, min(share, 1.0))
    half = (
        np.array([3.5 * max(len(line.removeprefix("<b>").removesuffix("</b>")) for line in lines), 8 * len(lines)]) + 5
    )
    way = np.abs(np.subtract(start, end) * _UNIT)
    edge = float((half / np.maximum(way / np.linalg.norm(way), 1e-6)).min())
    return {
        **{"x": x, "y": y, "ax": ax, "ay": ay, "xref": "x", "yref": "y", "axref": "x", "ayref": "y", "text": ""},
        **{"showarrow": True, "arrowhead": 2, "arrowwidth": width, "arrowsize": max(0.7, 2.5 / width)},
        **{"arrowcolor": palette.MUTED, "standoff": edge},
    }


def _half_width(places: Mapping[Node | None, tuple[float, float]]) -> float:
    return max(abs(x) for x, _ in places.values()) + 0.5


def _laid_out(stages: Sequence[Sequence[Node]], links: Sequence[Edge]) -> dict[Node | None, tuple[float, float]]:
    """Where each part stands, as (x, y) in units of a stage.

    Stages move sideways, one at a time, as long as this lets fewer links cross parts.
    """
    widest = max(1.0, *(len(own) - 1 for own in stages)) / 2
    shifts = [0.5 * (-1) ** height if len(own) == 1 else 0.0 for height, own in enumerate(stages)]

    def made(shifts: Sequence[float]) -> tuple[int, dict[Node | None, tuple[float, float]]]:
        places: dict[Node | None, tuple[float, float]] = {None: (0.0, len(stages))}
        for height, (own, shift) in enumerate(zip(stages, shifts)):
            places |= {node: (i - (len(own) - 1) / 2 + shift, height) for i, node in enumerate(own)}
        return _crossed(links, places), places

    best = made(shifts)
    for height, own in [*enumerate(stages)] * 2:
        for shift in (0.0, -0.25, 0.25, -0.5, 0.5, -0.75, 0.75, -1.0, 1.0):
            if not best[0] or (len(own) - 1) / 2 + abs(shift) > widest:
                continue
            moved = [*shifts[:height], shift, *shifts[height + 1 :]]
            if (tried := made(moved))[0] < best[0]:
                best, shifts = tried, moved
    return best[1]


def _crossed(links: Sequence[Edge], places: Mapping[Node | None, tuple[float, float]]) -> int:
    """How many points of links lie on other parts, on a phone."""
    unit = np.array([_NARROWEST / (2 * _half_width(places)), _STAGE])  # pixels
    crossed = 0
    for link in links:
        start, end = (np.array(places[node]) for node in (link.sender, link.receiver))
        way = start + np.outer(_ALONG, end - start)  # (K, 2)
        others = np.array([place for node, place in places.items() if node not in (link.sender, link.receiver)])
        crossed += int((np.abs(way[:, None] - others.reshape(-1, 2)) * unit < np.array(_PART) / 2).all(2).sum())
    return crossed


def _stage(node: Node) -> int:
    return 2 * node.layer + (node.head is None)
