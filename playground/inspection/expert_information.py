"""Expert information: how many bits a token's expert tells about its hidden speaker (source).

R = routers, N = tokens, E = experts, S = sources, G = values of what is given (tokens).

The mutual information I(expert; source) is 0 where knowing the expert says nothing about who speaks, and at most the
entropy of the sources (2 bits for four equally frequent speakers). Alone it misleads: a router that looks at nothing
but the token, even an untrained one, scores what that token gives away. So three measures stand side by side:

total       I(expert; source)
beyond      I(expert; source | token): what is told beyond the token itself, 0 for a router that sees only the token
remembered  the same at the openings of sentences alone, where all sources write the same tokens: only what was read in
            earlier sentences can tell them apart there

All stand beside what routers tell that learned nothing (`nulls.py`).
"""

from __future__ import annotations

import numpy as np

from .probe import Probe

MEASURES = ("total", "beyond", "remembered")


def joint_counts(
    experts: np.ndarray, sources: np.ndarray, n_experts: int, n_sources: int, given: np.ndarray | None = None
) -> np.ndarray:
    """Counts (G, E, S): how often tokens of each source chose each expert, for each number in `given` (N,).

    `experts` and `sources` are (N,); without `given` G is 1.
    """
    group = np.zeros(len(experts), dtype=int) if given is None else given
    n_groups = int(group.max(initial=0)) + 1
    cells = (group * n_experts + experts) * n_sources + sources
    return np.bincount(cells, minlength=n_groups * n_experts * n_sources).reshape(-1, n_experts, n_sources)


def mutual_information(counts: np.ndarray) -> float:
    """I(E; S | G) in bits of counts (G, E, S); 0 for an empty table. (Cover and Thomas 2006, sections 2.3 and 2.5.)"""
    counts = np.asarray(counts, dtype=np.float64)
    experts, sources = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    expected = experts * sources / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    seen = counts > 0
    return max(float((counts[seen] * np.log2(counts[seen] / expected[seen])).sum() / max(counts.sum(), 1)), 0.0)


def expert_information(
    choices: np.ndarray, n_experts: int, probe: Probe, sources: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """By measure, the bits (R,) that first choices (R, N) tell about the probe's sources.

    `sources` (R, N) stand in place of the probe's own; either array may have one row, which all of the other share.
    """
    tokens, openings = probe.ids.flatten().numpy(), probe.openings.ravel()
    everywhere = np.ones(len(tokens), dtype=bool)
    sources = probe.sources.reshape(1, -1) if sources is None else sources
    choices, sources = np.broadcast_arrays(choices, sources)
    bits = {}
    for name, counted, given in (
        ("total", everywhere, np.zeros_like(tokens)),
        ("beyond", everywhere, tokens),
        ("remembered", openings, tokens),
    ):
        group = np.unique(given[counted], return_inverse=True)[1]
        rows = zip(choices[:, counted], sources[:, counted])
        bits[name] = np.array(
            [mutual_information(joint_counts(*row, n_experts, len(probe.names), group)) for row in rows]
        )
    return bits
