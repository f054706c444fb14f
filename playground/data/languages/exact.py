"""ExactModel: a language's true next-token distribution, by the forward algorithm (Rabiner 1989, section III.A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .graph import Graph


class Belief(NamedTuple):
    """Where in its graph the generator may stand, given the tokens seen: places about to emit, and their weights."""

    places: np.ndarray
    """(n,) int: places, each one token inside one edge's text."""
    weights: np.ndarray
    """(n,) float: each place's probability; they sum to 1."""


class ExactModel:
    """Reads a language token by token and knows, exactly, how probable every next token is.

    A place is one token inside the text of one edge. Reading a token keeps the places that emit it and moves each one
    on: to the next token of its edge, or from an edge's end to the beginnings of all edges of the state it leads to.
    A window cut out of a long text may start anywhere, so the belief before it is the stationary distribution over all
    places: the best any reader of just this window could do.

    `encode` must cut an edge's text into the same tokens by itself as within a longer text. That holds for characters,
    and for words if edges end at word boundaries.
    """

    def __init__(self, graph: Graph, encode: Callable[[str], list[int]], vocab_size: int):
        self.graph, self.vocab_size = graph, vocab_size
        cache: dict[str, list[int]] = {}
        edges = [cache[t] if t in cache else cache.setdefault(t, encode(t)) for t in graph.texts]
        lengths = np.array([len(tokens) for tokens in edges])
        assert lengths.min() > 0, "an edge without tokens would make the generator move unseen"
        self.tokens = np.concatenate([np.array(tokens) for tokens in edges])  # (places,)
        self.edge = np.repeat(np.arange(len(edges)), lengths)  # (places,)
        self.edge_start = np.concatenate(([0], np.cumsum(lengths)[:-1]))  # (edges,)
        self.is_last = np.zeros(len(self.tokens), dtype=bool)
        self.is_last[self.edge_start + lengths - 1] = True
        weights = (graph.visits[graph.source] * graph.probability)[self.edge]
        self.anywhere = Belief(np.arange(len(self.tokens)), weights / weights.sum())

    def next_token(self, belief: Belief) -> np.ndarray:
        """Probability (V,) of every next token."""
        return np.bincount(self.tokens[belief.places], belief.weights, minlength=self.vocab_size)

    def read(self, belief: Belief, token: int) -> tuple[float, Belief]:
        """How probable the token was, and the belief after it. An impossible token has probability 0."""
        said = self._said(belief, token)
        probability = float(said.weights.sum())
        return (probability, self._moved_on(said)) if probability else (0.0, belief)

    def losses(self, windows: np.ndarray, *, shared_prefix: int = 6) -> np.ndarray:
        """Surprise in nats (N, T) at tokens 1 … T of each window (N, T + 1), given the window's tokens before them."""
        one_kind = np.zeros(len(self.tokens), dtype=np.int64)
        return self.losses_and_kinds(windows, one_kind, shared_prefix=shared_prefix)[0]

    def losses_and_kinds(
        self, windows: np.ndarray, kinds: np.ndarray, *, shared_prefix: int = 6
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `losses` returns, and the likeliest kind (N, T) for each token's place.

        `kinds` (places,) gives every place's kind.
        Beliefs of the first few tokens are wide but shared by many windows, so they are computed once.
        """
        known: dict[tuple[int, ...], tuple[float, int, Belief]] = {}
        out = np.empty((windows.shape[0], windows.shape[1] - 1))
        found = np.zeros(out.shape, dtype=np.int64)
        for row, window in enumerate(windows.tolist()):
            belief = self.anywhere
            for position, token in enumerate(window):
                prefix = tuple(window[: position + 1]) if position < shared_prefix else None
                if prefix in known:
                    probability, kind, belief = known[prefix]
                else:
                    said = self._said(belief, token)
                    probability = float(said.weights.sum())
                    kind = int(np.bincount(kinds[said.places], said.weights).argmax()) if probability else 0
                    belief = self._moved_on(said) if probability else belief
                    if prefix is not None:
                        known[prefix] = probability, kind, belief
                if position:
                    out[row, position - 1] = -np.log(probability) if probability > 0 else np.inf
                    found[row, position - 1] = kind
        return out, found

    def _said(self, belief: Belief, token: int) -> Belief:
        """The places in a belief that emit this token, with unchanged weights."""
        emits = self.tokens[belief.places] == token
        return Belief(belief.places[emits], belief.weights[emits])

    def _moved_on(self, said: Belief) -> Belief:
        """The belief after these places have emitted their token."""
        places, weights = said.places, said.weights / said.weights.sum()
        last = self.is_last[places]
        if not last.any():
            return Belief(places + 1, weights)
        reached = self.graph.target[self.edge[places[last]]]
        states, which = np.unique(reached, return_inverse=True)
        begun = self._enter(states, np.bincount(which, weights[last]))
        inside = ~last
        return Belief(
            np.concatenate((places[inside] + 1, begun.places)), np.concatenate((weights[inside], begun.weights))
        )

    def _enter(self, states: np.ndarray, weights: np.ndarray) -> Belief:
        """The belief on entering these states: at the beginning of each of their edges."""
        first, last = self.graph.first_edge[states], self.graph.first_edge[states + 1]
        edges = np.concatenate([np.arange(a, b) for a, b in zip(first, last)])
        return Belief(self.edge_start[edges], np.repeat(weights, last - first) * self.graph.probability[edges])
