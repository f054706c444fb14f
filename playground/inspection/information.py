"""Information in bits: what a token's expert tells about its source, from counts, and what a perfect reader knows.

N = tokens, E = experts, S = sources, G = values of what is given (tokens).
"""

from __future__ import annotations

import numpy as np

from ..data.languages import ExactModel
from ..data.languages.exact import Belief

SHARED_PREFIX = 6
"""Tokens at the beginning of a window whose beliefs are wide, but shared by many windows."""


def counted(
    experts: np.ndarray,
    sources: np.ndarray,
    n_experts: int,
    n_sources: int,
    given: np.ndarray | None = None,
) -> np.ndarray:
    """Counts (E, S): how often each expert was visited by tokens of each source.

    `experts` is (N,) or, with several visits per token, (N, K); `sources` is (N,). With `given` (N,), such as the
    tokens themselves, one table for each of its values: (G, E, S).
    """
    experts, sources = np.asarray(experts).reshape(len(sources), -1), np.asarray(sources)
    kinds, group = (
        (np.zeros(1), np.zeros(len(sources), int)) if given is None else np.unique(given, return_inverse=True)
    )
    flat = (group.ravel()[:, None] * n_experts + experts) * n_sources + sources[:, None]
    table = np.bincount(flat.ravel(), minlength=len(kinds) * n_experts * n_sources)
    return table.reshape(-1, n_experts, n_sources)[slice(None) if given is not None else 0]


def mutual_information(counts: np.ndarray) -> float:
    """I(row; column) in bits of a table of counts (E, S); of a stack (G, E, S), what is told beyond knowing which G.

    The second is the conditional mutual information I(E; S | G). Nothing is known from an empty table. (Cover and
    Thomas 2006, sections 2.3 and 2.5.)
    """
    stack = np.asarray(counts, dtype=np.float64)
    stack = stack[None] if stack.ndim == 2 else stack
    total = stack.sum()
    if total == 0:
        return 0.0
    rows, columns = stack.sum(axis=2, keepdims=True), stack.sum(axis=1, keepdims=True)
    independent = rows * columns / np.maximum(stack.sum(axis=(1, 2), keepdims=True), 1)
    seen = stack > 0
    return max(float((stack[seen] * np.log2(stack[seen] / independent[seen])).sum() / total), 0.0)


def entropy(counts: np.ndarray) -> float:
    """Entropy in bits of counts or shares (any shape)."""
    shares = np.asarray(counts, dtype=np.float64).ravel()
    shares = shares[shares > 0] / shares.sum() if shares.sum() else shares[:0]
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def perfect_reader_bits(exact: ExactModel, windows: np.ndarray, n_sources: int) -> float:
    """What the best reader knows of each token's source after reading it, from its window alone, in bits.

    The mean, over tokens, of how far the sources' posterior given the window up to and including the token lies from
    their frequencies: I(source; text so far). No router can carry more about the source.
    """
    graph = exact.graph
    names = list(dict.fromkeys(state[0] for state in graph.states))
    state_source = np.array([names.index(state[0]) for state in graph.states])
    place_source = state_source[graph.source[exact.edge]]  # (places,)
    prior = np.bincount(place_source[exact.anywhere.places], exact.anywhere.weights, minlength=n_sources)
    known: dict[tuple[int, ...], tuple[float, Belief]] = {(): (0.0, exact.anywhere)}

    def after(belief: Belief, token: int) -> tuple[float, Belief]:
        """What is left to know once the token was read, in bits, and the belief then."""
        emits = exact.tokens[belief.places] == token
        posterior = np.bincount(place_source[belief.places[emits]], belief.weights[emits], n_sources)
        return entropy(posterior), exact.read(belief, token)[1]

    left = []
    for window in np.asarray(windows).tolist():
        belief = exact.anywhere
        for place, token in enumerate(window, start=1):
            if place <= SHARED_PREFIX:
                key = tuple(window[:place])
                if key not in known:
                    known[key] = after(belief, token)
                bits, belief = known[key]
            else:
                bits, belief = after(belief, token)
            left.append(bits)
    return entropy(prior) - float(np.mean(left))
