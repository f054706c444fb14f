"""What experts learned: how much a token's expert tells about its true source, in bits, and against chance.

N = tokens, E = experts, S = sources (the hidden speakers of a language that has them), V = vocabulary.

The mutual information I(expert; source) is 0 where knowing the expert says nothing about who speaks, and at most the
entropy of the sources (2 bits for four equally frequent speakers). Taken plainly it misleads: a router that looks at
nothing but the token, even an untrained one, scores what that token gives away. So three measures stand side by side:

total       I(expert; source)
beyond      I(expert; source | token): what is told beyond the token itself, 0 for a router that sees only the token
remembered  the same at the openings of sentences alone, where all sources write the same tokens: only what was read in
            earlier sentences can tell them apart there

each against chance (the speakers shuffled among the sentences), and all against what a perfect reader would know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..data.languages import ExactModel, Language
from ..data.languages.exact import Belief
from ..model import ModelConfig, Transformer
from .routing import Routing, routing_of

PROBE_SEED = 900_001
"""Of the text that specialisation is measured on; far from the seeds of texts that models learn from."""


SHARED_PREFIX = 6


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


@dataclass(frozen=True, eq=False)
class LayerInformation:
    """What the experts of one layer tell about the true source; each token counts with its first choice."""

    layer: int
    table: np.ndarray
    """(E, S) how many tokens of each source chose each expert first."""
    bits: dict[str, float]
    """By measure: total, beyond, remembered."""
    by_chance: dict[str, Chance]
    """The same measures with the sources shuffled among the sentences."""


MEASURES = ("total", "beyond", "remembered")


def specialisation(routing: Routing, probe: Probe, rounds: int = 100) -> list[LayerInformation]:
    """What the experts of every layer tell about the sources of `probe`, whose ids `routing` routed.

    `rounds` shuffles make the chance; 0 leaves it out.
    """
    E, S = routing.n_experts, len(probe.names)
    sources, blocks, tokens, opens = (
        np.asarray(x).ravel() for x in (probe.sources, probe.sentences, probe.ids, probe.openings)
    )
    where = {"total": (slice(None), None), "beyond": (slice(None), tokens), "remembered": (opens, tokens[opens])}
    found = []
    for i, layer in enumerate(routing.layers):
        first = routing.experts[i, ..., 0].flatten().numpy()
        bits, by_chance = {}, {}
        for name, (some, given) in where.items():
            bits[name] = mutual_information(counted(first[some], sources[some], E, S, given))
            if rounds:
                by_chance[name] = chance(first[some], sources[some], E, S, blocks[some], given, rounds)
        found.append(LayerInformation(layer, counted(first, sources, E, S), bits, by_chance))
    return found


def specialisation_over_training(
    config: ModelConfig, snapshots: Iterable[tuple[int, Mapping[str, torch.Tensor]]], probe: Probe
) -> list[dict[str, Any]]:
    """The same measures along a run, from snapshots (step, weights): records {step, total, beyond, remembered}.

    Each measure is a list with a number of bits per layer with experts; plain values, to be kept with a checkpoint.
    """
    model, records = Transformer(config), []
    for step, state in snapshots:
        model.load_state_dict({name: tensor.float() for name, tensor in state.items()})
        layers = specialisation(routing_of(model, probe.ids), probe, rounds=0)
        records.append({"step": step, **{name: [layer.bits[name] for layer in layers] for name in MEASURES}})
    return records


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


def chance(
    experts: np.ndarray,
    sources: np.ndarray,
    n_experts: int,
    n_sources: int,
    blocks: np.ndarray | None = None,
    given: np.ndarray | None = None,
    rounds: int = 100,
    seed: int = 0,
) -> Chance:
    """The mutual information of experts and shuffled sources: a permutation test.

    Whole blocks (sentences) exchange their source, so that what belongs together stays together: tokens of one
    sentence share many habits, and shuffling them one by one would make chance look smaller than it is. Without
    `blocks` every token is its own. `given` as in `counted`.
    """
    experts, sources = np.asarray(experts).reshape(len(sources), -1), np.asarray(sources)
    blocks = np.arange(len(sources)) if blocks is None else np.asarray(blocks)
    _, first, block = np.unique(blocks, return_index=True, return_inverse=True)
    label, rng, block = sources[first], np.random.default_rng(seed), block.ravel()  # a label per block
    # visits that any shuffle treats alike are counted once: (G·E, blocks that visit) instead of every token
    groups, group = np.unique(np.zeros(len(sources)) if given is None else given, return_inverse=True)
    cell = group.ravel()[:, None] * n_experts + experts  # (N, K)
    pairs, visits = np.unique(cell * len(label) + block[:, None], return_counts=True)
    cell, block = pairs // len(label), pairs % len(label)
    shape = (len(groups), n_experts, n_sources)
    bits = []
    for _ in range(rounds):
        table = np.bincount(cell * n_sources + rng.permutation(label)[block], visits, minlength=int(np.prod(shape)))
        bits.append(mutual_information(table.reshape(shape)))
    return Chance(float(np.mean(bits)), float(np.quantile(bits, 0.95)))


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
            if place <= SHARED_PREFIX:  # beliefs of the first tokens are wide, but shared by many windows
                key = tuple(window[:place])
                if key not in known:
                    known[key] = after(belief, token)
                bits, belief = known[key]
            else:
                bits, belief = after(belief, token)
            left.append(bits)
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


def favourites(experts: np.ndarray, tokens: np.ndarray, expert: int, least: int = 5, most: int = 12) -> list[Lift]:
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
        Lift(int(t), float(s), float(s / base), int(n))
        for t, s, n in zip(kinds, shares, counts)
        if n >= least and s > base
    ]
    return sorted(found, key=lambda lift: (-lift.lift, -lift.count))[:most]
