"""What experts learned: how much a token's expert tells about its true source, in bits, and against chance.

N = tokens, E = experts, S = sources (the hidden speakers of a language that has them), V = vocabulary.

The mutual information I(expert; source) is 0 where knowing the expert says nothing about who speaks, and at most the
entropy of the sources (2 bits for four equally frequent speakers). Three numbers keep it honest: what shuffling the
speakers among the sentences would give (chance), what the token alone gives away without any context, and what a
perfect reader of the same text would know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ..data.languages import ExactModel, Language

PROBE_SEED = 900_001
"""Of the text that specialisation is measured on; far from the seeds of texts that models learn from."""


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


@dataclass(frozen=True)
class Chance:
    """What unrelated labels would give."""

    mean: float
    """Bits, over all shuffles."""
    p95: float
    """Bits that one shuffle in twenty exceeds."""


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
    return Probe(
        torch.tensor(ids[:needed]).view(shape),
        np.array(sources[:needed]).reshape(shape),
        np.array(sentences[:needed]).reshape(shape),
        language.sources,
    )


def expert_source_table(experts: np.ndarray, sources: np.ndarray, n_experts: int, n_sources: int) -> np.ndarray:
    """Counts (E, S): how often each expert was visited by tokens of each source.

    `experts` is (N,) or, with several visits per token, (N, K); `sources` is (N,).
    """
    experts = np.asarray(experts).reshape(len(sources), -1)
    flat = experts * n_sources + np.asarray(sources)[:, None]
    return np.bincount(flat.ravel(), minlength=n_experts * n_sources).reshape(n_experts, n_sources)


def mutual_information(counts: np.ndarray) -> float:
    """I(row; column) in bits of a table of counts; 0 for an empty one (Cover and Thomas 2006, section 2.3)."""
    counts = np.asarray(counts, dtype=np.float64)
    total = counts.sum()
    if total == 0:
        return 0.0
    joint = counts / total
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return max(float((joint[seen] * np.log2(joint[seen] / independent[seen])).sum()), 0.0)


def entropy(counts: np.ndarray) -> float:
    """Entropy in bits of counts or shares (any shape)."""
    shares = np.asarray(counts, dtype=np.float64).ravel()
    shares = shares[shares > 0] / shares.sum() if shares.sum() else shares[:0]
    return float(-(shares * np.log2(shares)).sum())


def chance(
    experts: np.ndarray,
    sources: np.ndarray,
    n_experts: int,
    n_sources: int,
    blocks: np.ndarray | None = None,
    rounds: int = 200,
    seed: int = 0,
) -> Chance:
    """The mutual information of experts and shuffled sources: a permutation test.

    Whole blocks (sentences) exchange their source, so that the shuffled labels keep what belongs together together;
    tokens of one sentence share many habits, and shuffling them one by one would make chance look smaller than it is.
    Without `blocks` every token is its own.
    """
    experts = np.asarray(experts).reshape(len(sources), -1)
    blocks = np.arange(len(sources)) if blocks is None else np.asarray(blocks)
    _, first, block = np.unique(blocks, return_index=True, return_inverse=True)
    label = np.asarray(sources)[first]  # (blocks,)
    flat = block[:, None] * n_experts + experts
    visits = np.bincount(flat.ravel(), minlength=len(first) * n_experts).reshape(-1, n_experts)  # (blocks, E)
    one_hot = np.eye(n_sources)[label]
    rng = np.random.default_rng(seed)
    bits = [mutual_information(visits.T @ one_hot[rng.permutation(len(label))]) for _ in range(rounds)]
    return Chance(float(np.mean(bits)), float(np.quantile(bits, 0.95)))


def token_information(tokens: np.ndarray, sources: np.ndarray) -> float:
    """I(token; source) in bits: what the token gives away by itself, without any context."""
    _, numbers = np.unique(tokens, return_inverse=True)
    return mutual_information(
        expert_source_table(numbers.ravel(), sources, int(numbers.max()) + 1, int(np.max(sources)) + 1)
    )


def information_beyond_token(experts: np.ndarray, sources: np.ndarray, tokens: np.ndarray) -> float:
    """I(expert; source | token) in bits: what the expert tells beyond which token it is.

    An expert that only ever looks at the token scores 0 here, however much the token gives away.
    """
    experts = np.asarray(experts).reshape(len(sources), -1)
    n_experts, n_sources = int(experts.max()) + 1, int(np.max(sources)) + 1
    total = 0.0
    for token in np.unique(tokens):
        here = np.asarray(tokens) == token
        table = expert_source_table(experts[here], np.asarray(sources)[here], n_experts, n_sources)
        total += here.mean() * mutual_information(table)
    return total


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
    left = []
    for window in np.asarray(windows).tolist():
        belief = exact.anywhere
        for token in window:
            emits = exact.tokens[belief.places] == token
            left.append(entropy(np.bincount(place_source[belief.places[emits]], belief.weights[emits], n_sources)))
            _, belief = exact.read(belief, token)
    return entropy(prior) - float(np.mean(left))


@dataclass(frozen=True)
class Lift:
    """One token of an expert's favourites."""

    token: int
    share: float
    """Of the token's visits that go to this expert."""
    lift: float
    """That share divided by the expert's share of all visits: 1 where the expert does not care."""
    count: int
    """How often the token occurs."""


def favourites(
    experts: np.ndarray, tokens: np.ndarray, expert: int, n_experts: int, least: int = 5, most: int = 12
) -> list[Lift]:
    """The tokens that an expert takes far more often than it takes tokens in general, the highest lift first.

    `experts` (N, K) and `tokens` (N,); tokens that occur fewer than `least` times say nothing and are left out.
    """
    tokens = np.asarray(tokens)
    experts = np.asarray(experts).reshape(len(tokens), -1)
    taken = (experts == expert).mean(axis=1)  # (N,) share of each token's visits
    base = taken.mean()
    if base == 0:
        return []
    kinds, number, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    shares = np.bincount(number.ravel(), taken) / counts
    found = [
        Lift(int(t), float(s), float(s / base), int(n)) for t, s, n in zip(kinds, shares, counts) if n >= least and s
    ]
    return sorted(found, key=lambda lift: (-lift.lift, -lift.count))[:most]
