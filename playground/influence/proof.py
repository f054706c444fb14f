"""Proof: the same training without some passages, and without as many random ones; what the selection is worth then.

A removed passage is replaced by other passages of the same length, so every batch is the same except where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..data import Corpus
from ..engine import SamplingConfig, generate
from ..model import ModelConfig, Transformer
from ..training import Finished, Stepped, TrainConfig, train
from ..training.losses import Interrupted
from ..training.verdict import mean_interval
from .gradients import log_probability
from .passages import Passages, passages_of
from .ranking import Progress

SAMPLE = 40
"""Tokens that show what a model says in place of the selection."""
NEAREST = 20
"""A random passage is one of so many whose length is nearest."""
Ranges = Sequence[tuple[int, int]]
"""(first token, one after the last) of passages in the training text."""


@dataclass(frozen=True)
class Trial:
    """What one seed came to, in nats: the selection's log-probability."""

    seed: int
    without: float
    """After training without the passages."""
    control: float
    """After training without as many random ones."""
    said: str = ""
    """What the model without the passages writes in place of the selection."""

    @property
    def effect(self) -> float:
        """What the passages were worth: above 0 where they raised it."""
        return self.control - self.without


def sources(corpus: Corpus, ranges: Ranges, seed: int) -> np.ndarray:
    """For each token of a stream the place in the text from which it comes once these passages are replaced."""
    rng, tokens, passages = np.random.default_rng(seed), len(corpus.train), passages_of(corpus)
    gone = np.zeros(tokens, dtype=bool)
    for start, end in ranges:
        gone[start:end] = True
    before, places = np.concatenate(([0], np.cumsum(gone))), np.arange(tokens)
    for start, end in ranges:
        length = end - start
        inside = passages.starts[passages.starts + length <= tokens]
        clear = inside[before[inside + length] == before[inside]]  # it may run on, but into no removed passage
        if not len(clear):
            raise ValueError("These passages are nearly the whole text. Choose fewer")
        at = clear[rng.integers(len(clear))]
        places[start:end] = np.arange(at, at + length)
    return places


def without(corpus: Corpus, ranges: Ranges, seed: int) -> Corpus:
    """The corpus with these passages replaced by others of the same length, chosen by the seed.

    A document is replaced by another document. Raises ValueError where nothing else remains.
    """
    if corpus.documents:
        return _without_documents(corpus, ranges, np.random.default_rng(seed))
    return replace(corpus, train=corpus.train[torch.from_numpy(sources(corpus, ranges, seed))])


def _without_documents(corpus: Corpus, ranges: Ranges, rng: np.random.Generator) -> Corpus:
    passages, gone = passages_of(corpus), {tuple(each) for each in ranges}
    all_ = list(zip(passages.starts.tolist(), passages.ends.tolist()))
    others = [each for each in all_ if each not in gone]
    if not others:
        raise ValueError("These passages are the whole text. Choose fewer")
    kept = [others[rng.integers(len(others))] if each in gone else each for each in all_]
    end = torch.tensor([-1])
    return replace(corpus, train=torch.cat([part for a, b in kept for part in (corpus.train[a:b], end)]))


def random_passages(passages: Passages, ranges: Ranges, seed: int) -> list[tuple[int, int]]:
    """As many other passages, of about the same lengths."""
    rng, gone = np.random.default_rng([seed, 1]), {start for start, _ in ranges}
    free = [i for i in range(len(passages)) if passages.starts[i] not in gone]
    lengths, found = passages.ends - passages.starts, []
    for start, end in ranges:
        if not free:
            break
        apart = np.abs(lengths[free] - (end - start))
        nearest = np.argsort(apart, kind="stable")[:NEAREST]
        i = free.pop(int(rng.choice(nearest)))
        found.append((int(passages.starts[i]), int(passages.ends[i])))
    return found


def quiet(training: TrainConfig) -> TrainConfig:
    """The same training, with nothing measured or sampled between its steps."""
    return training.replace(eval_every=0, eval_windows=1, sample_every=0, snapshots=0, patience=0, max_seconds=None)


def retrain(
    config: ModelConfig,
    training: TrainConfig,
    corpus: Corpus,
    steps: int,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[int | Transformer]:
    """The first `steps` steps of such a training; yields each, and the model at last. Raises Interrupted."""
    model, step = Transformer(config, seed=training.seed), 0
    made = iter(train(model, corpus, quiet(training), should_stop=should_stop))
    while step < steps and not isinstance(event := next(made), Finished):
        if isinstance(event, Stepped):
            step = event.step
            yield step
    made.close()
    if step < steps:
        raise Interrupted("stopped")
    yield model


def said_instead(model: Transformer, corpus: Corpus, ids: list[int], first: int) -> str:
    """What a model writes after ids[:first], each token the likeliest one, up to the end of a document.

    It is at least as long as the selection if no document ends before.
    """
    tokenizer, length = corpus.tokenizer, max(SAMPLE, len(ids) - first)
    stop = [tokenizer.token_text(end) for end in corpus.ends]
    steps = generate(model, ids[:first], length, SamplingConfig(greedy=True), stop=stop, tokenizer=tokenizer)
    return tokenizer.decode([step.tokens[0] for step in steps])


def prove(
    config: ModelConfig,
    training: TrainConfig,
    corpus: Corpus,
    ranges: Ranges,
    ids: list[int],
    first: int,
    *,
    steps: int,
    seed: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Progress | Trial]:
    """Train twice with this seed; ends with a Trial. Raises Interrupted, and ValueError if too little text remains."""
    others = random_passages(passages_of(corpus), ranges, seed)
    found, said = [], ""
    for n, gone in enumerate((ranges, others)):
        training = training.replace(seed=seed)
        for each in retrain(config, training, without(corpus, gone, seed), steps, should_stop=should_stop):
            if isinstance(each, Transformer):
                found.append(log_probability(each, ids, first))
                if gone is ranges:
                    said = said_instead(each, corpus, ids, first)
            else:
                yield Progress((n + each / steps) / 2)
    yield Trial(seed, *found, said)


def mean_effect(trials: Sequence[Trial]) -> tuple[float, float]:
    """The mean effect in nats and half its 95 % interval, which one seed alone does not give (infinite)."""
    mean, margin = mean_interval(np.array([trial.effect for trial in trials]))
    return float(mean), float(margin)


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's, −1 … 1; NaN where either side has fewer than three different values."""
    if min(len(set(a)), len(set(b))) < 3:
        return math.nan
    return float(np.corrcoef(*(_ranks(np.asarray(each, dtype=float)) for each in (a, b)))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ties share their mean rank."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[group]
