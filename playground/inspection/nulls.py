"""Nulls: what routers that learned nothing about who speaks tell of it, and what is left above the strongest of them.

N = tokens, L = layers with experts, E = experts, S = sources, R = draws, G = parts of the text.

A layer's stream is not the router's work: attention has gathered who spoke before, and any fixed function of it, such
as eight random directions, tells some of that. Whether the router *learned* to know is a question about the rest. So
every number of bits stands beside four others, measured on the same tokens:

shuffled   the same experts, held against the speakers of other sentences (`chance.py`): luck alone
position   experts drawn once for every place of the window, whatever stands there
before     the same model before its training, its routers on its own stream
random     random directions in place of the trained router, on the trained model's stream

What probes find in untrained features has to be taken off what they find in trained ones: Hewitt and Liang 2019;
Zhang and Bowman 2018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..model import Pass, Recorder, Transformer
from ..training.verdict import student_t
from .chance import Chance
from .information import counted
from .probe import Probe
from .routing import AT_ONCE, expert_layers, routing_of
from .specialisation import MEASURES, LayerInformation, of_measure

DRAWS = 30
"""Random routers, and random functions of the place."""
PARTS = 24
"""Of the text, each left out once, for the interval (the jackknife; Efron and Tibshirani 1993, chapter 11)."""
NULLS = {
    "shuffled": "the same experts held against other sentences",
    "position": "experts drawn for every place of the text",
    "before": "the same routers before training",
    "random": f"{DRAWS} random routers on the same stream",
}


@dataclass(frozen=True)
class Null:
    """What knowing nothing gives."""

    bits: float
    """Mean over the draws."""
    spread: float
    """Standard deviation between draws; 0 where there is only one."""


@dataclass(frozen=True)
class Left:
    """What one layer's experts tell by one measure, and how much of it nothing would give."""

    bits: float
    nulls: dict[str, Null]
    """By the keys of `NULLS`."""
    left: float
    """Bits above the strongest of them; below zero where a null tells more."""
    margin: float
    """Half the width of an interval that holds in 95 of 100 texts for all layers at once, the luck of a random router
    included."""

    @property
    def strongest(self) -> str:
        """The null that tells most."""
        return max(self.nulls, key=lambda name: self.nulls[name].bits)

    @property
    def is_clear(self) -> bool:
        """Whether the experts tell more than every null, by more than the interval."""
        return self.left > self.margin


def against_nulls(
    model: Transformer, probe: Probe, layers: Sequence[LayerInformation], drawn: np.ndarray, seed: int = 0
) -> list[dict[str, Left]]:
    """For every layer, by measure: what its experts tell of the probe's sources beyond what nothing gives.

    Args:
        layers: what `specialisation` found of the same model and probe, with its chance.
        drawn: the `random_routes` of the same.
        seed: of the model's training, which also drew its first weights.
    """
    E, (windows, T) = model.config.n_experts, probe.ids.shape
    learned = routing_of(model, probe.ids).experts[..., 0].flatten(1).numpy()  # (L, N)
    before = routing_of(Transformer(model.config, seed=seed), probe.ids).experts[..., 0].flatten(1).numpy()
    by_place = np.tile(np.random.default_rng(seed).integers(0, E, (DRAWS, T)), windows)  # (R, N)
    factor = student_t(DRAWS - 1, 1 - 0.05 / len(layers))
    found = []
    for i, layer in enumerate(layers):
        routes = np.concatenate((learned[i, None], before[i, None], by_place, drawn[i]))
        bits = _bits(routes, E, probe)  # by measure (1 + G, 2 + 2R): the whole text, then each part left out
        found.append({name: _left(bits[name], layer.by_chance[name], factor) for name in MEASURES})
    return found


def untaught_lifts(drawn: np.ndarray, n_experts: int, probe: Probe) -> list[tuple[float, float]]:
    """For every layer: the largest lift of an expert for a source that a random router on its stream has.

    The mean over `DRAWS` routers, and what one in forty exceeds. A lift is how much more often than the average a
    source chooses an expert first; experts that less than a fiftieth of the tokens choose first do not count.

    Args:
        drawn: the `random_routes` on this probe.
    """
    sources, S, found = probe.sources.ravel(), len(probe.names), []
    for layer in drawn:
        lifts = np.array([_largest_lift(counted(route, sources, n_experts, S)) for route in layer])
        up = student_t(DRAWS - 1) * lifts.std(ddof=1) * math.sqrt(1 + 1 / DRAWS)
        found.append((float(lifts.mean()), float(lifts.mean() + up)))
    return found


def _largest_lift(table: np.ndarray) -> float:
    """Of counts (E, S)."""
    rows, columns, total = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True), table.sum()
    lifts = table * total / np.maximum(rows * columns, 1)
    return float(lifts[rows[:, 0] >= 0.02 * total].max())


def _left(bits: np.ndarray, by_shift: Chance, factor: float) -> Left:
    """Bits (1 + G, 2 + 2R) of the learned router, the one before training, R functions of the place, R random ones."""
    learned = bits[:, 0]
    drawn = {"before": bits[:, 1:2], "position": bits[:, 2 : 2 + DRAWS], "random": bits[:, 2 + DRAWS :]}
    # a text too short to shift has no luck to compare with, so that nothing is clear
    few = not math.isfinite(by_shift.p95)
    luck = Null(0.0, math.inf) if few else Null(by_shift.mean, (by_shift.p95 - by_shift.mean) / 1.645)
    nulls = {
        "shuffled": luck,
        **{name: Null(float(b[0].mean()), float(b[0].std(ddof=min(b.shape[1] - 1, 1)))) for name, b in drawn.items()},
    }
    strongest = max(nulls, key=lambda name: nulls[name].bits)
    apart = learned - (drawn[strongest].mean(axis=1) if strongest in drawn else nulls[strongest].bits)  # (1 + G,)
    G, without = len(apart) - 1, apart[1:]
    of_text = (G - 1) / G * ((without - without.mean()) ** 2).sum()
    of_draws = nulls[strongest].spread ** 2 * (1 + 1 / DRAWS)
    margin = math.inf if few else factor * math.sqrt(of_text + of_draws)
    return Left(float(learned[0]), nulls, float(apart[0]), margin)


@torch.no_grad()
def random_routes(model: Transformer, ids: torch.Tensor, seed: int = 0) -> np.ndarray:
    """First choices (L, R, N) of routers with random weights, as large as the trained ones', on what those read."""
    layers, found, rng = expert_layers(model.config), [], np.random.default_rng(seed)
    E, d = model.config.n_experts, model.config.d_model
    weights = {
        layer: model.blocks[layer].feedforward.router.weight.std()
        * torch.from_numpy(rng.standard_normal((DRAWS * E, d)))
        for layer in layers
    }
    for some in ids.split(AT_ONCE):
        recorder = Recorder(("ff_in",))
        model(some, Pass(tap=recorder))
        streams = (recorder.trace["ff_in", layer].flatten(0, 1).double() for layer in layers)  # (n, d) each
        found.append(
            [(x @ weights[layer].T).unflatten(1, (DRAWS, E)).argmax(dim=-1).T for layer, x in zip(layers, streams)]
        )
    return np.stack([torch.cat(parts, dim=1).numpy() for parts in zip(*found)])


def _bits(routes: np.ndarray, n_experts: int, probe: Probe) -> dict[str, np.ndarray]:
    """By measure, the bits (1 + G, routes) that first choices (routes, N) tell of the sources.

    Of the whole text, then of the text without each of its parts.
    """
    tokens, sources = probe.ids.flatten().numpy(), probe.sources.ravel()
    windows = np.repeat(np.arange(len(probe.ids)), probe.ids.shape[1])
    part = windows * PARTS // len(probe.ids)  # whole windows, next to each other, stay together
    n_log_n = np.arange(len(tokens) + 1, dtype=np.float64)
    n_log_n[1:] *= np.log2(n_log_n[1:])
    found = {}
    for measure, some, given in of_measure(probe):
        kinds, group = np.unique(given, return_inverse=True)
        shape = len(kinds), n_experts, len(probe.names)
        cells = ((part[some] * shape[0] + group) * n_experts + routes[:, some]) * shape[2] + sources[some]
        found[measure] = np.stack([_without_each(row, shape, n_log_n) for row in cells], axis=1)
    return found


def _without_each(cells: np.ndarray, shape: tuple[int, int, int], n_log_n: np.ndarray) -> np.ndarray:
    """Bits (1 + G) of cells (N,), each a part, a group, an expert and a source: of all, then without each part."""
    by_part = np.bincount(cells, minlength=PARTS * math.prod(shape)).reshape(PARTS, *shape)
    whole = by_part.sum(axis=0, keepdims=True)
    counts = np.concatenate((whole, whole - by_part))  # (1 + G, groups, E, S)
    sums = (n_log_n[counts.sum(axis=axes)].reshape(len(counts), -1).sum(axis=1) for axes in ((), 3, 2, (2, 3)))
    both, experts, sources, groups = sums
    return (both - experts - sources + groups) / np.maximum(counts.sum(axis=(1, 2, 3)), 1)
