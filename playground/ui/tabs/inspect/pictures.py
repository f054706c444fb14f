"""Which figure draws which step of the walk, all of one height, so that nothing moves from step to step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....figures.attention import pattern_map, signed_map
from ....figures.bars import named_bars, token_bars
from ....figures.candidates import next_tokens
from ....figures.vectors import MOST_NUMBERS, rotation, vector_rows
from ....inspection import Look
from ....inspection.walk import Step
from .drawn import cell, window
from .frame import Place

HEIGHT = 380
"""Pixels of every picture."""
MOST_ROWS = 22
"""Vectors of tokens drawn at most: a row needs the height of its name."""
_NAMES = 24
"""Names of rows that fit above each other in a map."""

READING = {
    "embed": "One row per token, one column per number of its vector. Click a row to choose its token.",
    "arrive": "One row per token, one column per number of its vector. Click a row to choose its token.",
    "norm": "The same rows after the norm: this is what attention reads. Click a row to choose its token.",
    "project": "What attention reads of this token (h), then its Q, K and V, head after head.",
    "split": "One row per head, the chosen one marked.",
    "qk_norm": "The chosen head's query and key of this token, before and after.",
    "rotate": "Pairs of numbers of the chosen head's query as arrows: dotted before, solid after its turn.",
    "share": "The key of the token looked at, as each query head meets it; the chosen head is marked.",
    "scores": "Rows ask, columns answer; red agrees, blue disagrees. Click a cell for its receipt.",
    "mask": "Blank cells are hidden: they get no weight at all. Click a cell for its receipt.",
    "softmax": "Each row shares out a weight of 1. The framed cell is that of the receipt; click another.",
    "mix": "Each row is a token's value times its weight; the last row is their sum.",
    "output": "One row per head: what it adds to the token, and how long that is. Click one to choose it.",
    "add": "One bar per token: how far it is moved (‖Δ‖), and how alike it stays (cosine). Click one to choose it.",
    "mlp": "The neurons that answer most strongly to this token.",
    "route": "How likely the router thinks each expert; the token visits the dark ones.",
    "predict": "The best candidates for the next token; the one that really follows is marked where it is among them.",
}
"""How to read the picture of a step."""
VECTORS = ("embed", "arrive", "norm")
"""Steps that draw a vector per token."""


@dataclass(frozen=True)
class _Drawing:
    step: Step
    labels: tuple[str, ...]
    look: Look
    place: Place
    part: slice

    @property
    def tokens(self) -> list[str]:
        return self.look.labels()[self.part]


def part_drawn(name: str, look: Look, place: Place) -> slice:
    """Which tokens the step draws, where it draws tokens."""
    return window(look.length, place.query, MOST_ROWS) if name in VECTORS else window(look.length, place.query)


def picture(step: Step, labels: tuple[str, ...], look: Look, place: Place) -> tuple[dict[str, Any], slice | None]:
    """The step's figure, and which tokens it draws where it draws a part of them.

    `labels` name the rows of what is drawn, where they are not tokens.
    """
    part = part_drawn(step.name, look, place)
    figure = _DRAWERS[step.name](_Drawing(step, labels, look, place, part))
    return _of_one_height(figure), part if step.name in (*VECTORS, "scores", "mask", "softmax") else None


def _of_one_height(figure: dict[str, Any]) -> dict[str, Any]:
    layout = figure["layout"]
    layout["height"] = HEIGHT
    axis = layout.get("yaxis", {})
    if (count := len(axis.get("tickvals", ()))) > _NAMES and figure["data"][0]["type"] == "heatmap":
        stride = -(-count // _NAMES)
        axis |= {"tickvals": axis["tickvals"][::stride], "ticktext": axis["ticktext"][::stride]}
    return figure


def _vectors(at: _Drawing) -> dict[str, Any]:
    rows = [(label, vector, "") for label, vector in zip(at.tokens, at.step.arrays["stream"][at.part])]
    return vector_rows(rows, chosen=at.place.query - at.part.start)


def _project(at: _Drawing) -> dict[str, Any]:
    arrays = at.step.arrays
    return vector_rows([("h", arrays["x"], ""), *((n.upper(), arrays[n], n) for n in "qkv")])


def _split(at: _Drawing) -> dict[str, Any]:
    arrays, kv = at.step.arrays, at.look.kv_head(at.place.head)
    rows = [(f"{n.upper()} head {h}", vector, n) for n in "qkv" for h, vector in enumerate(arrays[n])]
    H, Hkv = len(arrays["q"]), len(arrays["k"])
    return vector_rows(rows, chosen=[at.place.head, H + kv, H + Hkv + kv])


def _qk_norm(at: _Drawing) -> dict[str, Any]:
    return vector_rows(
        [(f"{n.upper()} {when}", at.step.arrays[f"{n}_{when}"], n) for n in "qk" for when in ("before", "after")]
    )


def _rotate(at: _Drawing) -> dict[str, Any]:
    return rotation(at.step.arrays["before"], at.step.arrays["after"], at.step.arrays["angles"])


def _share(at: _Drawing) -> dict[str, Any]:
    rows = [(label, vector, "k") for label, vector in zip(at.labels, at.step.arrays["k"])]
    return vector_rows(rows, chosen=at.place.head)


def _scores(at: _Drawing) -> dict[str, Any]:
    cells = at.step.arrays["scores"][at.part, at.part]
    mark = cell(at.part, at.place.query, at.place.key)
    return signed_map(cells, at.tokens, at.tokens, blank=~np.isfinite(cells), name="score", mark=mark)


def _softmax(at: _Drawing) -> dict[str, Any]:
    pattern, mark = at.step.arrays["pattern"][at.part, at.part], cell(at.part, at.place.query, at.place.key)
    shown, causal = at.look.tokens[at.part], at.look.config.causal
    return pattern_map(pattern, shown, causal=causal, first=at.part.start, mark=mark)


def _mix(at: _Drawing) -> dict[str, Any]:
    rows = [(label, vector, "v") for label, vector in zip(at.labels, at.step.arrays["parts"])]
    return vector_rows([*rows, ("sum = z", at.step.arrays["z"], "s")], chosen=len(rows))


def _output(at: _Drawing) -> dict[str, Any]:
    vectors = [*at.step.arrays["written"], at.step.arrays["out"]]
    return vector_rows([(label, vector, "s") for label, vector in zip(at.labels, vectors)], chosen=at.place.head)


def _add(at: _Drawing) -> dict[str, Any]:
    arrays = at.step.arrays
    return token_bars(at.look.labels(), [("‖Δ‖", arrays["delta"]), ("cosine", arrays["cosine"])], chosen=at.place.query)


def _mlp(at: _Drawing) -> dict[str, Any]:
    chosen = at.step.arrays.get("chosen")
    title, strong = ("activation", None) if chosen is None else ("probability", chosen > 0)
    return named_bars(at.labels, at.step.arrays["values"], title, strong=strong)


def _predict(at: _Drawing) -> dict[str, Any]:
    chosen, after = None, at.place.query + 1
    if after < at.look.length:
        hits = np.flatnonzero(at.step.arrays["tokens"] == at.look.ids[after])
        chosen = int(hits[0]) if len(hits) else None
    return next_tokens(at.labels, [float(p) for p in at.step.arrays["probabilities"]], chosen=chosen)


_DRAWERS: dict[str, Callable[[_Drawing], dict[str, Any]]] = {
    **dict.fromkeys(VECTORS, _vectors),
    "project": _project,
    "split": _split,
    "qk_norm": _qk_norm,
    "rotate": _rotate,
    "share": _share,
    "scores": _scores,
    "mask": _scores,
    "softmax": _softmax,
    "mix": _mix,
    "output": _output,
    "add": _add,
    "mlp": _mlp,
    "predict": _predict,
}


def reading(look: Look, name: str, layer: int) -> str:
    """How to read the step's picture, and how much of it is drawn where that is not all."""
    d = look.config.d_model
    widths = {**dict.fromkeys((*VECTORS, "output"), d), "project": max(d, look.config.n_heads * look.config.d_head)}
    left_out = widths.get(name, 0) > MOST_NUMBERS
    name = "route" if name == "mlp" and look.config.has_experts(layer) else name
    return READING[name] + (f" The first {MOST_NUMBERS} of {widths[name]:,} numbers are drawn." if left_out else "")
