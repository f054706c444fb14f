"""Which figure draws which step of the walk."""

from __future__ import annotations

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

READING = {
    "embed": "One row per token, one column per number of its vector. Click a row to choose its token.",
    "project": "One row per vector: what attention reads of this token, then its Q, K and V, head after head.",
    "split": "One row per head, the chosen one marked.",
    "turn": "Pairs of numbers of the chosen head's query as arrows: dotted before, solid after its turn.",
    "scores": "Rows ask, columns answer; red agrees, blue disagrees. Click a cell for its receipt.",
    "mask": "Blank cells are hidden: they get no weight at all. Click a cell for its receipt.",
    "softmax": "Each row shares out a weight of 1. The framed cell is the one on the receipt below; click another.",
    "blend": "Each row is a token's value, scaled by its weight; the last row is their sum.",
    "output": "One row per head: its blend, and beside its name the length of what it adds. Click one to choose it.",
    "change": "One bar per token: how far attention moves it, and how alike it stays (cosine). Click one to choose it.",
    "think": "The neurons that answer most strongly to this token.",
    "route": "How likely the router thinks each expert; the token visits the likeliest.",
    "predict": "The best candidates for the next token; the one that really follows is marked where it is among them.",
}
"""How to read the picture of a step."""


def picture(step: Step, look: Look, place: Place) -> tuple[dict[str, Any], slice | None]:
    """The step's figure, and which tokens it draws where it draws tokens."""
    arrays, name = step.arrays, step.name
    part, labels = window(look.length, place.query), look.labels()
    tokens = labels[part]
    mark = cell(part, place.query, place.key)
    if name == "embed":
        rows = [(label, vector, "") for label, vector in zip(tokens, arrays["stream"][part])]
        return vector_rows(rows, chosen=place.query - part.start), part
    if name == "project":
        return vector_rows([("x", arrays["x"], ""), *((n.upper(), arrays[n], n) for n in "qkv")]), None
    if name == "split":
        kv = look.kv_head(place.head)
        rows = [(f"{n.upper()} head {h}", vector, n) for n in "qkv" for h, vector in enumerate(arrays[n])]
        H, Hkv = len(arrays["q"]), len(arrays["k"])
        return vector_rows(rows, chosen=[place.head, H + kv, H + Hkv + kv]), None
    if name == "turn":
        return rotation(arrays["before"], arrays["after"], arrays["angles"]), None
    if name in ("scores", "mask"):
        cells = arrays["scores"][part, part]
        return signed_map(cells, tokens, tokens, blank=~np.isfinite(cells), name="score", mark=mark), part
    if name == "softmax":
        shown = look.tokens[part]
        pattern = arrays["pattern"][part, part]
        return pattern_map(pattern, shown, causal=look.config.causal, first=part.start, mark=mark), part
    if name == "blend":
        rows = [(label, vector, "v") for label, vector in zip(step.labels, arrays["parts"])]
        return vector_rows([*rows, ("sum = z", arrays["z"], "s")], chosen=len(rows)), None
    if name == "output":
        rows = [
            (f"{label} · {n:.2f}", vector, "s") for label, vector, n in zip(step.labels, arrays["z"], arrays["written"])
        ]
        return vector_rows(rows, chosen=place.head), None
    if name == "change":
        return token_bars(labels, [("‖Δ‖", arrays["delta"]), ("cosine", arrays["cosine"])], chosen=place.query), None
    if name == "think":
        title = "probability" if "experts" in step.title else "activation"
        return named_bars(step.labels, arrays["values"], title, strong=arrays["chosen"] > 0), None
    assert name == "predict", name
    chosen = None
    if place.query + 1 < look.length:
        hits = np.flatnonzero(arrays["tokens"] == look.ids[place.query + 1])
        chosen = int(hits[0]) if len(hits) else None
    return next_tokens(step.labels, [float(p) for p in arrays["probabilities"]], chosen=chosen), None


def reading(look: Look, name: str, layer: int) -> str:
    """How to read the step's picture, and how much of it is drawn where that is not all."""
    widths = {"embed": look.config.d_model, "project": look.config.n_heads * look.config.d_head}
    left_out = widths.get(name, 0) > MOST_NUMBERS
    name = "route" if name == "think" and look.config.has_experts(layer) else name
    return READING[name] + (f" The first {MOST_NUMBERS} of {widths[name]:,} numbers are drawn." if left_out else "")
