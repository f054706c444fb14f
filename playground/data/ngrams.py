"""Guessers: predict a token from the few before it, by counting. Each can be scored, and can write a text.

V = vocabulary; N, T = windows and their tokens. An n-gram's probabilities follow its counts, drawn towards those of
the next shorter n-gram with the weight of m observations (a hierarchy of Dirichlet priors, MacKay and Peto 1995). n
and every m are chosen on the last tenth of the training text, never on the validation text.

Contexts are numbered: a single token by its id; k + 1 tokens by the place of their pair (a k-token context and the
token after it) among the pairs that occur. A context that never occurred is −1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

LONGEST = 5
"""Tokens of the longest n-gram tried."""
TUNED_ON, TOO_FEW = 20_000, 100
"""At most this many tokens of the training text's last tenth choose n and m; with fewer, a bigram with m = 1."""
WORTH = 0.01
"""Looking back one more token must help by this many nats."""
_POWERS, _EVEN = (0.85, 1.0, 1.1), (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
"""Smoothings to try: how much sharper the frequencies are, and what share is spread evenly."""
_STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e5)


@dataclass(frozen=True)
class _Order:
    """How often each token followed each context of one length."""

    vocab_size: int
    codes: np.ndarray
    """(pairs,) int64, ascending: context × V + token, of each pair that occurs."""
    counts: np.ndarray
    """(pairs,) how often each pair occurs."""
    seen: np.ndarray
    """(contexts,) how often each context was followed by anything."""
    strength: float = 1.0
    """m: the shorter context counts for this many observations."""

    def probability(self, contexts: np.ndarray, tokens: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        """Each token's probability after its context, given what the shorter context says; all of one shape."""
        count, seen = self.count(contexts, tokens)
        return (count + self.strength * shorter) / (seen + self.strength)

    def count(self, contexts: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How often each token followed its context, and how often any token did."""
        at = self.place(contexts, tokens)
        return np.where(at >= 0, self.counts[at], 0), np.where(contexts >= 0, self.seen[contexts], 0)

    def following(self, context: int, shorter: np.ndarray) -> np.ndarray:
        """Probabilities (V,) of all tokens after one context, given what the shorter one says (V,)."""
        first, last = np.searchsorted(self.codes, (context * self.vocab_size, (context + 1) * self.vocab_size))
        mixed = self.strength * shorter
        mixed[self.codes[first:last] - context * self.vocab_size] += self.counts[first:last]
        return mixed / (self.seen[context] + self.strength)

    def longer(self, contexts: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Contexts (…, T) lengthened by one token: each of `contexts` (…, T) with its next token (…, T)."""
        before = np.full_like(contexts, -1)
        before[..., 1:] = contexts[..., :-1]
        return self.place(before, tokens)

    def place(self, contexts: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Index of each pair among those that occur; −1 for a pair that does not."""
        wanted = np.where((contexts >= 0) & (tokens >= 0), contexts * self.vocab_size + tokens, -1)
        at = np.minimum(np.searchsorted(self.codes, wanted), len(self.codes) - 1)
        return np.where(self.codes[at] == wanted, at, -1)


class NGram:
    """Next-token probabilities from the last n − 1 tokens; `unigram` (V,) and one order per token looked back at."""

    def __init__(self, unigram: np.ndarray, orders: tuple[_Order, ...] = ()):
        self.unigram, self.orders = unigram, orders
        self.n = 1 + len(orders)

    def shorter(self, n: int) -> NGram:
        """The n-gram model of order n contained in this one."""
        return NGram(self.unigram, self.orders[: n - 1])

    def losses(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Surprise in nats (N, T) at each target (N, T), given the inputs up to it; 0 at targets below 0.

        Before a window has shown n − 1 tokens, a shorter n-gram guesses.
        """
        probability, contexts = self._by_shorter(inputs, targets)
        if self.orders:
            probability = self.orders[-1].probability(contexts, targets, probability)
        return np.where(targets >= 0, -np.log(probability), 0.0)

    def _by_shorter(self, inputs: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Target probabilities (N, T) by the guesser that looks back one token less, and this one's contexts (N, T)."""
        probability, contexts = self.unigram[np.where(targets >= 0, targets, 0)], inputs
        for order in self.orders[:-1]:
            probability = order.probability(contexts, targets, probability)
            contexts = order.longer(contexts, inputs)
        return probability, contexts

    def at_best(self, inputs: np.ndarray, targets: np.ndarray) -> float:
        """The mean loss at the targets (N, T) with the best of several smoothings."""
        counted, tried = targets >= 0, []
        if not self.orders:
            for power in _POWERS:
                sharper = (self.unigram**power / (self.unigram**power).sum())[targets[counted]]
                tried += [-np.log((1 - even) * sharper + even / len(self.unigram)).mean() for even in _EVEN]
            return float(min(tried))
        shorter, contexts = self._by_shorter(inputs, targets)
        count, seen = (found[counted] for found in self.orders[-1].count(contexts, targets))
        for m in (self.orders[-1].strength, *_STRENGTHS):
            tried.append(-np.log((count + m * shorter[counted]) / (seen + m)).mean())
        return float(min(tried))

    def next_token(self, before: Sequence[int]) -> np.ndarray:
        """Probabilities (V,) of the next token after `before`, of which only the last n − 1 tokens matter."""
        probability, tokens = self.unigram, np.array(before[max(len(before) - len(self.orders), 0) :], dtype=np.int64)
        contexts = tokens
        for i, order in enumerate(self.orders[: len(tokens)]):
            contexts = self.orders[i - 1].longer(contexts, tokens) if i else tokens
            if contexts[-1] < 0:
                break
            probability = order.following(int(contexts[-1]), probability)
        return probability

    def write(self, n_tokens: int, seed: int, after: int | None = None, without: tuple[int, ...] = ()) -> list[int]:
        """Write tokens, each sampled from its probabilities, the first following `after`; never one of `without`."""
        rng = np.random.default_rng(seed)
        written = [] if after is None else [after]
        for _ in range(n_tokens):
            probability = self.next_token(written).copy()
            probability[list(without)] = 0.0
            written.append(int(rng.choice(len(probability), p=probability / probability.sum())))
        return written[len(written) - n_tokens :]


def uniform(vocab_size: int) -> NGram:
    """Every token equally likely."""
    return NGram(np.full(vocab_size, 1.0 / vocab_size))


def tune_strengths(tokens: np.ndarray, vocab_size: int) -> list[float]:
    """The strengths of the longest n-gram that a text (tokens,) supports: one for each token it looks back at.

    Tokens below 0 separate documents.
    """
    cut = len(tokens) - len(tokens) // 10
    if (tokens[cut:] >= 0).sum() < TOO_FEW:
        return [1.0]
    return [order.strength for order in _tuned(tokens[:cut], tokens[cut:][:TUNED_ON], vocab_size).orders]


def count_ngrams(tokens: np.ndarray, vocab_size: int, strengths: list[float]) -> NGram:
    """The n-gram of a text (tokens,) with these strengths, one for each token it looks back at."""
    guesser, contexts = _unigram(tokens, vocab_size), tokens
    for strength in strengths:
        guesser, contexts = _lengthened(guesser, contexts, tokens, strength)
    return guesser


def _unigram(tokens: np.ndarray, vocab_size: int) -> NGram:
    """How often each token occurs, with one added to each count."""
    counts = np.bincount(tokens[tokens >= 0], minlength=vocab_size) + 1.0
    return NGram(counts / counts.sum())


def _lengthened(guesser: NGram, contexts: np.ndarray, tokens: np.ndarray, strength: float) -> tuple[NGram, np.ndarray]:
    """The guesser that looks back one token more, and the contexts (tokens,) of a text that the next one would need."""
    vocab_size, last = len(guesser.unigram), guesser.orders[-1] if guesser.orders else None
    pairs = (contexts[:-1] >= 0) & (tokens[1:] >= 0)
    before = contexts[:-1][pairs]
    codes, counts = np.unique(before * vocab_size + tokens[1:][pairs], return_counts=True)
    seen = np.bincount(before, minlength=len(last.codes) if last else vocab_size)
    order = _Order(vocab_size, codes, counts, seen, strength)
    return NGram(guesser.unigram, (*guesser.orders, order)), order.longer(contexts, tokens)


def _tuned(tokens: np.ndarray, tail: np.ndarray, vocab_size: int) -> NGram:
    """As many orders as help to guess the tail, each with the most helpful strength."""
    guesser, contexts, reached = _unigram(tokens, vocab_size), tokens, np.inf
    judged = tail[None, :-1], np.where(tail[:-1] >= 0, tail[1:], -1)[None]
    while guesser.n < LONGEST:
        longer, contexts = _lengthened(guesser, contexts, tokens, 1.0)
        *orders, newest = longer.orders
        tried = [NGram(guesser.unigram, (*orders, replace(newest, strength=m))) for m in _STRENGTHS]
        losses = [each.losses(*judged).sum() for each in tried]
        best = int(np.argmin(losses))
        if guesser.n > 1 and losses[best] > reached - WORTH * max((judged[1] >= 0).sum(), 1):
            break
        guesser, reached = tried[best], losses[best]
    return guesser
