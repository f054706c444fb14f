"""The picture of each step; none is higher than HEIGHT, for which the page keeps room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....figures.attention import pattern_map, signed_map
from ....figures.bars import signed_bars, token_bars
from ....figures.candidates import next_tokens
from ....figures.shapes import slanted
from ....figures.vectors import MOST_NUMBERS, rotation, vector_rows
from ....inspection.walk import Step
from ....words.inspect import READING
from .drawn import MOST_TOKENS, cell, window
from .selection import At

HEIGHT = 380
"""Pixels of every picture but a map of few rows."""
ROWS = 6
"""Token vectors shown at most: the chosen one and its neighbours."""

VECTORS = ("embed", "arrive", "norm")
"""Steps that show a vector per token."""
MAPS = ("scores", "mask", "softmax")
"""Steps that show token against token."""


@dataclass(frozen=True)
class _Drawing:
    step: Step
    labels: tuple[str, ...]
    at: At
    part: slice

    @property
    def tokens(self) -> list[str]:
        return self.at.look.labels()[self.part]

    @property
    def mark(self) -> tuple[int, int] | None:
        """The chosen cell of a map."""
        return cell(self.part, self.at.chosen.query, self.at.chosen.key)


def part_drawn(name: str, at: At) -> slice:
    """Which tokens the step shows, where it shows rows of tokens."""
    return window(at.look.length, at.chosen.query, ROWS if name in VECTORS else MOST_TOKENS)


def picture(step: Step, labels: tuple[str, ...], at: At) -> dict[str, Any]:
    """The step's figure. `labels` name the rows of what is shown, where these are not tokens."""
    figure = _DRAWERS[step.name](_Drawing(step, labels, at, part_drawn(step.name, at)))
    layout, is_map = figure["layout"], figure["data"][0]["type"] == "heatmap"
    layout["height"] = min(layout["height"], HEIGHT) if is_map else HEIGHT
    return figure


def _vectors(d: _Drawing) -> dict[str, Any]:
    rows = [(token, vector, "") for token, vector in zip(d.at.look.tokens[d.part], d.step.arrays["stream"][d.part])]
    return vector_rows(rows, chosen=d.at.chosen.query - d.part.start)


def _split(d: _Drawing) -> dict[str, Any]:
    arrays, kv = d.step.arrays, d.at.look.kv_head(d.at.chosen.head)
    rows = [(f"{n.upper()} head {h}", vector, n) for n in "qkv" for h, vector in enumerate(arrays[n])]
    H, Hkv = len(arrays["q"]), len(arrays["k"])
    return vector_rows(rows, chosen=[d.at.chosen.head, H + kv, H + Hkv + kv])


def _named(d: _Drawing, vectors: Sequence[np.ndarray], role: str) -> list[tuple[str, np.ndarray, str]]:
    return [(label, vector, role) for label, vector in zip(d.labels, vectors)]


def _scores(d: _Drawing) -> dict[str, Any]:
    return signed_map(d.step.arrays["scores"][d.part, d.part], d.tokens, name="score", mark=d.mark)


def _softmax(d: _Drawing) -> dict[str, Any]:
    pattern = d.step.arrays["pattern"][d.part, d.part]
    shown, causal = d.at.look.tokens[d.part], d.at.look.config.causal
    return pattern_map(pattern, shown, causal=causal, first=d.part.start, mark=d.mark)


def _mlp(d: _Drawing) -> dict[str, Any]:
    values = d.step.arrays["values"]
    if d.at.look.config.has_experts(d.at.chosen.layer):
        return next_tokens(d.labels, values.tolist())
    return signed_bars(values, slanted(d.labels, "neuron"), "activation", HEIGHT)


_DRAWERS: dict[str, Callable[[_Drawing], dict[str, Any]]] = {
    **dict.fromkeys(VECTORS, _vectors),
    "project": lambda d: vector_rows(
        [("h", d.step.arrays["x"], ""), *((n.upper(), d.step.arrays[n], n) for n in "qkv")]
    ),
    "split": _split,
    "qk_norm": lambda d: vector_rows(
        [(f"{n.upper()} {when}", d.step.arrays[f"{n}_{when}"], n) for n in "qk" for when in ("before", "after")]
    ),
    "rotate": lambda d: rotation(*(d.step.arrays[name] for name in ("before", "after", "angles"))),
    "share": lambda d: vector_rows(_named(d, d.step.arrays["k"], "k"), chosen=d.at.chosen.head),
    "scores": _scores,
    "mask": _scores,
    "softmax": _softmax,
    "mix": lambda d: vector_rows(
        [*_named(d, d.step.arrays["parts"], "v"), ("sum = z", d.step.arrays["z"], "s")], chosen=len(d.labels)
    ),
    "output": lambda d: vector_rows(
        _named(d, [*d.step.arrays["written"], d.step.arrays["out"]], "s"), chosen=d.at.chosen.head
    ),
    "add": lambda d: token_bars(
        d.at.look.labels(),
        [("‖Δ‖", d.step.arrays["delta"]), ("cosine", d.step.arrays["cosine"])],
        chosen=d.at.chosen.query,
    ),
    "mlp": _mlp,
    "predict": lambda d: next_tokens(d.labels, d.step.arrays["probabilities"].tolist()),
}


def reading(name: str, at: At) -> str:
    """How to read the step's picture, and how much of each vector it shows where that is not all."""
    config = at.look.config
    d = config.d_model
    widths = {**dict.fromkeys((*VECTORS, "output"), d), "project": max(d, config.n_heads * config.d_head)}
    left_out = widths.get(name, 0) > MOST_NUMBERS
    name = "route" if name == "mlp" and config.has_experts(at.chosen.layer) else name
    return READING[name] + (f" The first {MOST_NUMBERS} of {widths[name]:,} numbers are shown." if left_out else "")
