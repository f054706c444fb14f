"""A language as a finite graph: its states, and edges that emit a piece of text with a probability."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Mark = tuple[int, int, str]
"""(first character, one after the last, kind): a part of an edge's text, decided by a rule."""
CHANCE = "free choices"
"""The kind of text that no rule decides: it can only be guessed by frequency."""

Choice = tuple[float, str, Hashable]
"""(weight, text to emit, next state): one way to continue from a state."""


class Graph:
    """All states reachable from `start`, and for each its choices, weights normalised to probabilities.

    A text is a walk: pick one of the state's choices, write its text, go to its next state, for ever. Generators of
    stories or lines simply return to their start state.
    """

    def __init__(self, start: Hashable, choices: Callable[[Hashable], Iterable[Choice]]):
        number = {start: 0}
        self.texts: list[str] = []  # per edge
        sources: list[int] = []
        targets: list[int] = []
        probabilities: list[float] = []
        self.states: list[Hashable] = [start]
        for state in self.states:  # grows while it is walked
            offered = list(choices(state))
            total = sum(weight for weight, _, _ in offered)
            for weight, text, following in offered:
                if following not in number:
                    number[following] = len(self.states)
                    self.states.append(following)
                self.texts.append(text)
                sources.append(number[state])
                targets.append(number[following])
                probabilities.append(weight / total)
        self.source = np.array(sources)  # (edges,), ascending
        self.target = np.array(targets)  # (edges,)
        self.probability = np.array(probabilities)  # (edges,)
        self.first_edge = np.searchsorted(self.source, np.arange(len(self.states) + 1))  # edges of s: [s] to [s + 1]

    @cached_property
    def visits(self) -> np.ndarray:
        """Stationary probability (states,) of each state in a long walk, counted once per choice."""
        visits = np.full(len(self.states), 1.0 / len(self.states))
        for _ in range(100_000):
            moved = np.bincount(self.target, visits[self.source] * self.probability, minlength=len(visits))
            mixed = 0.5 * (visits + moved)  # half a step, so that a walk with a period settles too
            if np.abs(mixed - visits).sum() < 1e-13:
                break
            visits = mixed
        return mixed / mixed.sum()


@dataclass(frozen=True)
class Language:
    """A synthetic language: what it is called, what it teaches, and its generator."""

    name: str
    title: str
    """The name shown on a button."""
    note: str
    """One sentence: what a model must learn to predict it."""
    prompt: str
    """A beginning that a trained model can continue."""
    build: Callable[[], Graph]
    units: tuple[str, str] = ("line", "lines")
    """The unit that ends with a line break and is right or wrong as a whole: its name, in singular and plural."""
    spelled: bool = False
    """Whether a word that occurs nowhere in the language counts as misspelled."""
    right: str = "right"
    """The word for units without a mistake, such as "right"."""
    mark: Callable[[Hashable, str], Iterable[Mark]] = lambda state, text: ()
    """The parts of an edge's text that a rule decides, given the state that the edge leaves."""
    broken: Callable[[str, str, tuple[str, ...]], str] = lambda kind, word, possible: f"the rule of {kind} is broken"
    """Why a word cannot stand where it does, given the kind that should, the word, and the few that could (or none)."""

    @property
    def judged(self) -> str:
        """What is counted, such as "sums right"."""
        return f"{self.units[1]} {self.right}"

    @cached_property
    def graph(self) -> Graph:
        """The generator's graph, built when first needed."""
        return self.build()

    def sample(self, n_characters: int, seed: int) -> str:
        """At least n_characters of text, from the start state, ending with a whole edge."""
        graph, rng = self.graph, np.random.default_rng(seed)
        # plain lists: taking numbers one by one from an array is twenty times as slow
        cumulative = np.cumsum(graph.probability).tolist()
        first_edge, target, texts = graph.first_edge.tolist(), graph.target.tolist(), graph.texts
        pieces: list[str] = []
        written, state = 0, 0
        while written < n_characters:
            for draw in rng.random(4096).tolist():
                first, last = first_edge[state], first_edge[state + 1]
                base = cumulative[first - 1] if first else 0.0
                edge = min(bisect_left(cumulative, base + draw, first, last), last - 1)
                pieces.append(texts[edge])
                written += len(texts[edge])
                state = target[edge]
                if written >= n_characters:
                    break
        return "".join(pieces)
