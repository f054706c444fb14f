"""Probes: a held-out text of a language whose every token has a known source, to measure experts on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ..data.languages import Language

PROBE_SEED = 900_001
"""Far from the seeds of texts that models learn from."""


@dataclass(frozen=True)
class Probe:
    """A held-out text of a language, cut into windows, with the true source of every token."""

    ids: torch.Tensor
    """(windows, T) tokens."""
    sources: np.ndarray
    """(windows, T) the number of each token's source."""
    sentences: np.ndarray
    """(windows, T) which sentence of the whole text a token belongs to; one sentence has one source."""
    names: tuple[str, ...]
    """Of the sources."""
    openings: np.ndarray
    """(windows, T) whether a token opens a sentence in a way that all sources share, with a sentence before it."""


def probe(
    language: Language,
    encode: Callable[[str], list[int]],
    context_length: int,
    n_windows: int = 32,
    seed: int = PROBE_SEED,
) -> Probe:
    """A text of `n_windows` windows whose every token has a known source.

    `encode` is applied to each sentence by itself, so that no token belongs to two. Raises ValueError for a language
    without hidden sources.
    """
    if not language.sources:
        raise ValueError(
            f"{language.title} has no hidden sources to compare the experts with: choose a model of Dialects"
        )
    needed = n_windows * context_length
    ids: list[int] = []
    sources: list[int] = []
    sentences: list[int] = []
    characters = 2 * needed
    while len(ids) < needed:
        text, owners = language.sample_with_sources(characters, seed)
        ids, sources, sentences = [], [], []
        start = 0
        for number, line in enumerate(text.splitlines(keepends=True)):
            tokens = encode(line)
            ids += tokens
            sources += [int(owners[start])] * len(tokens)
            sentences += [number] * len(tokens)
            start += len(line)
        characters *= 4  # long tokens need a longer text
    shape = (n_windows, context_length)
    number = np.array(sentences[:needed])
    begins = np.concatenate(([0], np.nonzero(np.diff(number))[0] + 1))
    place = np.arange(needed) - np.repeat(begins, np.diff(np.append(begins, needed)))  # within its sentence
    number, place = number.reshape(shape), place.reshape(shape)
    return Probe(
        torch.tensor(ids[:needed]).view(shape),
        np.array(sources[:needed]).reshape(shape),
        number,
        language.sources,
        (place < _shared_opening(language, encode)) & (number > number[:, :1]),
    )


def _shared_opening(language: Language, encode: Callable[[str], list[int]]) -> int:
    """How many tokens all sentences of a language begin with in common."""
    sentences = [encode(text) for text in dict.fromkeys(language.graph.texts)]
    shared = 0
    while all(len(s) > shared and s[shared] == sentences[0][shared] for s in sentences):
        shared += 1
    return shared
