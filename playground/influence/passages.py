"""Passages: a training text cut into lines or sentences, and which of its windows are worth measuring.

T = context length, N = windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..data import Corpus

LONGEST = 400
"""Tokens of a passage; what has no end in so many is cut."""
SHORTEST = 3
"""Tokens of a passage; what is shorter belongs to the one before."""
SIMILAR = 0.75
"""Share of the windows measured that have most in common with the selection; the others are spread over the text."""
ORDER = {"char": 5, "word": 2}
"""Tokens of the n-grams by which windows are compared; 3 for byte pairs."""
_PRIME = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Passages:
    """Where the passages of a training text are."""

    starts: np.ndarray
    """(P,) their first tokens."""
    ends: np.ndarray
    """(P,) one after their last tokens."""

    def __len__(self) -> int:
        return len(self.starts)

    def sums(self, per_token: np.ndarray) -> np.ndarray:
        """(P,) the sums of numbers per token."""
        total = np.concatenate(([0.0], np.cumsum(per_token, dtype=np.float64)))
        return total[self.ends] - total[self.starts]


def passages_of(corpus: Corpus) -> Passages:
    """Documents, or the lines of a language, or sentences."""
    tokens, tokenizer = corpus.train.numpy(), corpus.tokenizer
    if corpus.documents:
        ends = np.flatnonzero(tokens < 0)
        return Passages(np.concatenate(([0], ends[:-1] + 1)), ends)
    texts = [tokenizer.token_text(token) for token in range(corpus.vocab_size)]
    breaks = np.array(["\n" in text for text in texts])
    cuts = breaks[tokens]
    if corpus.language is None:
        stops = np.array([text.rstrip()[-1:] in tuple(".!?") for text in texts])
        spaces = np.array([text[:1].isspace() or tokenizer.kind == "word" for text in texts])
        cuts = cuts | (stops[tokens] & np.append(spaces[tokens[1:]], True))
    ends, cut = [], 0
    for end in [*(np.flatnonzero(cuts) + 1).tolist(), len(tokens)]:
        while end - cut > LONGEST:
            cut += LONGEST
            ends.append(cut)
        if end - cut >= SHORTEST or not ends:
            cut = end
            ends.append(end)
        else:
            cut = ends[-1] = end
    ends = np.array(ends)
    return Passages(np.concatenate(([0], ends[:-1])), ends)


def windows_of(corpus: Corpus, context_length: int) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Inputs and targets (N, T) that cover the training text once, and the place in it of each target (N, T)."""
    inputs, targets = corpus.windows("train", context_length)
    if corpus.documents:
        begins = passages_of(corpus).starts
    else:
        begins = np.arange(len(inputs)) * context_length
    return inputs, targets, begins[:, None] + 1 + np.arange(context_length)


def most_similar(corpus: Corpus, inputs: torch.Tensor, ids: list[int], count: int, seed: int = 0) -> np.ndarray:
    """The numbers of `count` windows: most of them share rare n-grams with `ids`, the others are random.

    All windows where there are no more. A shared n-gram counts by how rare it is in the text, once per window.
    """
    N, T = inputs.shape
    if count >= N:
        return np.arange(N)
    order = ORDER.get(corpus.tokenizer.kind, 3)
    text, asked = _hashes(inputs.numpy().reshape(-1), order), np.unique(_hashes(np.array(ids), order))
    score = np.zeros(N)
    at = np.searchsorted(asked, text)
    hits = np.flatnonzero(asked[np.minimum(at, len(asked) - 1)] == text) if len(asked) else np.array([], dtype=int)
    if len(hits):
        grams, windows = at[hits], np.minimum(hits // T, N - 1)
        weight = np.log(N / np.bincount(grams, minlength=len(asked)).clip(1)).clip(0.01)
        pairs = np.unique(np.stack((windows, grams)), axis=1)
        score = np.bincount(pairs[0], weight[pairs[1]], minlength=N)
    first = np.argsort(-score, kind="stable")[: round(SIMILAR * count)]
    rest = np.setdiff1d(np.arange(N), first)
    others = np.random.default_rng(seed).choice(rest, count - len(first), replace=False)
    return np.concatenate((first, np.sort(others)))


def _hashes(tokens: np.ndarray, order: int) -> np.ndarray:
    """One number for each run of `order` tokens."""
    n = len(tokens) - order + 1
    found = np.zeros(max(n, 0), dtype=np.uint64)
    for i in range(order if n > 0 else 0):
        found = found * _PRIME + tokens[i : i + n].astype(np.uint64) + np.uint64(1)
    return found


def first_copies(corpus: Corpus, passages: Passages) -> np.ndarray:
    """(P,) For each passage, the number of the first one with the same tokens, ignoring blanks at the ends."""
    tokens, tokenizer = corpus.train.numpy(), corpus.tokenizer
    blank = np.array([not tokenizer.token_text(token).strip() for token in range(corpus.vocab_size)])
    first: dict[bytes, int] = {}
    found = np.arange(len(passages))
    for i, (start, end) in enumerate(zip(passages.starts.tolist(), passages.ends.tolist())):
        piece = tokens[start:end]
        if len(inked := np.flatnonzero(~blank[piece])):
            found[i] = first.setdefault(piece[inked[0] : inked[-1] + 1].tobytes(), i)
    return found
