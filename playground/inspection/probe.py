"""Probe: a held-out text of a language whose hidden speakers are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..data.languages import Language

PROBE_SEED = 900_001
"""Far from the seeds of texts that models learn from."""


@dataclass(frozen=True)
class Probe:
    """A held-out text of a language, cut into windows, with the true source (speaker) of every token."""

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
    characters = 2 * needed
    while len(ids) < needed:
        text, owners = language.sample_with_sources(characters, seed)
        lines = text.splitlines(keepends=True)
        tokens = [encode(line) for line in lines]
        ids = [token for line in tokens for token in line]
        characters *= 4  # long tokens need a longer text
    lengths, shape = [len(line) for line in tokens], (n_windows, context_length)
    first_character = np.cumsum([0, *map(len, lines[:-1])])
    sentences = np.repeat(np.arange(len(lines)), lengths)[:needed].reshape(shape)
    place = np.concatenate([np.arange(n) for n in lengths])[:needed].reshape(shape)  # of a token within its sentence
    return Probe(
        torch.tensor(ids[:needed]).view(shape),
        np.asarray(owners)[first_character].astype(int)[sentences],
        sentences,
        language.sources,
        (place < _shared_opening(language, encode)) & (sentences > sentences[:, :1]),
    )


def _shared_opening(language: Language, encode: Callable[[str], list[int]]) -> int:
    """How many tokens all sentences of a language begin with in common."""
    sentences = [encode(text) for text in dict.fromkeys(language.graph.texts)]
    shared = 0
    while all(len(s) > shared and s[shared] == sentences[0][shared] for s in sentences):
        shared += 1
    return shared


def entropy(counts: Sequence[float] | np.ndarray) -> float:
    """Entropy in bits of counts or shares (any shape)."""
    shares = np.asarray(counts, dtype=np.float64).ravel()
    shares = shares[shares > 0] / shares.sum() if shares.sum() else shares[:0]
    return float(-(shares * np.log2(shares)).sum()) + 0.0
