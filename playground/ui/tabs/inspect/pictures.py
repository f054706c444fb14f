"""Which figure draws which step of the walk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....inspection import Look
from ....inspection.walk import Step
from ...figures.attention import pattern_map, signed_map
from ...figures.bars import named_bars, token_bars
from ...figures.candidates import next_tokens
from ...figures.vectors import rotation, vector_rows
from .drawn import cell, window
from .frame import Place


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
