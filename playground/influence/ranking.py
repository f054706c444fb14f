"""Ranking: which passages of a training text raise the log-probability of a selection, and which lower it.

The influence of a passage is the product of its gradient with the selection's, summed over moments of the run, each
weighted by the learning rates until then (Pruthi et al. 2020, "TracIn"). All passages are measured at the last moment;
those with the most influence there are measured at the other moments, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data import Corpus
from ..model import Transformer
from ..training import TrainConfig
from .geometry import optimizer_step
from .gradients import AT_ONCE, Gradient, changes_along, log_probability, selection_gradient, step_length
from .passages import Passages, first_copies, most_similar, passages_of, windows_of

CORRELATION = 0.13
"""Rank correlation of predicted and actual effects: `python -m benchmarks influence`, see benchmarks/README.md."""
MOMENTS = 8
"""Moments of a run at which influence is measured, at most."""
WORK = 5e10
"""Parameters times tokens of the windows that are measured at the last moment."""
MOST = 150_000
"""Tokens of these windows, however small the model."""
FEW = 500
"""All windows of so short a text are measured at every moment; of a longer one, one in AGAIN."""
AGAIN, FEWEST = 6, 16
"""One in so many windows, and so many at least."""
SHOWN = 10
"""Passages that are named on either side."""


@dataclass(frozen=True)
class Moment:
    """The model at one moment of its run."""

    step: int
    rate: float
    """The sum of the factors on the learning rate of the steps since the moment before."""
    model: Callable[[], Transformer]


@dataclass(frozen=True)
class Passage:
    """One passage, all its copies, and their influence."""

    places: tuple[tuple[int, int], ...]
    """(first token, one after the last) of each copy in the training text."""
    effect: float
    """The sum over all copies: above 0 where they raise the selection's log-probability; only its size beside others
    has a meaning."""


@dataclass(frozen=True)
class Measured:
    """The influence of every token that was measured."""

    passages: Passages
    effects: np.ndarray
    """(tokens of the training text,)"""
    seen: np.ndarray
    """(tokens,) at how many moments."""


@dataclass(frozen=True)
class Ranked:
    """The passages with most influence."""

    raising: tuple[Passage, ...]
    lowering: tuple[Passage, ...]
    """The strongest first."""
    measured: int
    of: int
    """Passages measured, and all there are."""
    moments: int
    log_probability: float
    """Of the selection, in nats, by the last weights."""
    rules: tuple[tuple[str, float], ...] = ()
    """Of a language: the rules that decide the tokens of the raising passages, by their share of the influence."""


@dataclass(frozen=True)
class Progress:
    """Which part is done, 0 … 1."""

    share: float


def moments_of(
    last: Transformer,
    last_step: int,
    training: TrainConfig | None,
    kept: Sequence[int] = (),
    open_: Callable[[int], Transformer] = lambda step: None,
) -> list[Moment]:
    """Up to MOMENTS moments of a run, evenly spread over those `kept`; the last one alone where none were kept."""
    kept = sorted(step for step in kept if 0 < step < last_step)
    count = min(MOMENTS - 1, len(kept))
    steps = [kept[i] for i in np.linspace(0, len(kept) - 1, count).round().astype(int)] if count else []
    found, before = [], 0
    for step in [*steps, last_step]:
        rates = [training.rate_at(n) for n in range(before + 1, step + 1)] if training else [1.0]
        model = (lambda: last) if step == last_step else (lambda step=step: open_(step))
        found.append(Moment(step, sum(rates), model))
        before = step
    return found


def measure(
    moments: Sequence[Moment],
    corpus: Corpus,
    training: TrainConfig,
    ids: list[int],
    first: int,
    *,
    step_of: Callable[[Transformer, Corpus, TrainConfig, Gradient], Gradient] = optimizer_step,
    work: float = WORK,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Progress | Measured]:
    """The influence of the training text on the tokens ids[first:]; ends with Measured. Raises Interrupted.

    Where the text is so long that measuring all of it would take more `work`, the windows that share most with the
    selection are measured, and some others.
    """
    last = moments[-1].model()
    T, passages = last.config.context_length, passages_of(corpus)
    inputs, targets, places = windows_of(corpus, T)
    count = max(int(min(work / last.config.n_active_parameters, MOST) / T), FEWEST)
    chosen = most_similar(corpus, inputs, ids[max(first - T // 4, 0) :], count)
    again = min(max(len(chosen) // AGAIN, FEWEST), len(chosen)) if len(inputs) > FEW else len(chosen)
    total, done = len(chosen) + (len(moments) - 1) * again, 0
    effects, seen = (np.zeros(len(corpus.train) + T + 1) for _ in range(2))
    for moment in reversed(moments):
        model = last if moment is moments[-1] else moment.model()
        gradient = selection_gradient(model, ids, first)
        direction = step_of(model, corpus, training, gradient)
        step = step_length(model, gradient, direction)
        for part in np.array_split(chosen, range(AT_ONCE, len(chosen), AT_ONCE)):
            x, y = inputs[part], targets[part]
            slopes = changes_along(model, direction, step, x, y, should_stop=should_stop).numpy()
            counts = y.numpy() >= 0
            effects[places[part][counts]] += moment.rate * slopes[counts]
            seen[places[part][counts]] += 1
            done += len(part)
            yield Progress(done / total)
        if moment is moments[-1] and again < len(chosen):
            strongest = np.zeros(len(effects))
            sums = np.abs(passages.sums(effects))
            strongest[_places(passages)] = np.repeat(sums, passages.ends - passages.starts)
            chosen = chosen[np.argsort(-strongest[places[chosen]].max(axis=1), kind="stable")[:again]]
    yield Measured(passages, effects[: len(corpus.train)], seen[: len(corpus.train)])


def rank(
    moments: Sequence[Moment],
    corpus: Corpus,
    training: TrainConfig,
    ids: list[int],
    first: int,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Progress | Ranked]:
    """Rank the passages by their influence on the tokens ids[first:], as `measure` finds it; ends with Ranked."""
    for found in measure(moments, corpus, training, ids, first, should_stop=should_stop):
        if isinstance(found, Measured):
            last = moments[-1].model()
            ranked = _ranked(found, corpus, len(moments), log_probability(last, ids, first))
            yield replace(ranked, rules=rules_of(corpus, found, ranked.raising, last.config.context_length))
        else:
            yield found


def _places(passages: Passages) -> np.ndarray:
    """The places of all tokens of all passages, in their order."""
    lengths = passages.ends - passages.starts
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(passages.starts, lengths) + offsets


def _ranked(found: Measured, corpus: Corpus, moments: int, log_p: float) -> Ranked:
    passages, copy_of = found.passages, first_copies(corpus, found.passages)
    sums, seen = passages.sums(found.effects), passages.sums(found.seen)
    # of others, only a part was measured, or the last moment alone
    whole = np.flatnonzero(seen >= 0.5 * moments * (passages.ends - passages.starts))
    total = np.bincount(copy_of[whole], sums[whole], minlength=len(passages))
    order = np.unique(copy_of[whole])
    order = order[np.argsort(-total[order], kind="stable")]

    def named(first: int) -> Passage:
        copies = np.flatnonzero(copy_of == first)
        places = zip(passages.starts[copies].tolist(), passages.ends[copies].tolist())
        return Passage(tuple(places), float(total[first]))

    raising = tuple(named(i) for i in order[:SHOWN] if total[i] > 0)
    lowering = tuple(named(i) for i in order[::-1][:SHOWN] if total[i] < 0)
    return Ranked(raising, lowering, int((seen > 0).sum()), len(passages), moments, log_p)


def rules_of(
    corpus: Corpus, found: Measured, passages: Sequence[Passage], context_length: int
) -> tuple[tuple[str, float], ...]:
    """The grammar rules behind the passages' tokens, each with its share of the influence that raises the selection."""
    inside = np.zeros(len(corpus.train) + context_length + 1, dtype=bool)
    for start, end in (place for each in passages for place in each.places):
        inside[start:end] = True
    inputs, targets, places = windows_of(corpus, context_length)
    rows = np.flatnonzero(inside[places].any(axis=1))
    kinds = corpus.kinds(inputs[rows], targets[rows]) if len(rows) else None
    if kinds is None:
        return ()
    effects = np.append(found.effects, np.zeros(context_length + 1))[places[rows]].clip(min=0) * inside[places[rows]]
    shares = {name: float(effects[kinds.part == i].sum()) for i, name in enumerate(kinds.names)}
    total = sum(shares.values())
    ordered = sorted(shares.items(), key=lambda each: -each[1])
    return tuple((name, share / total) for name, share in ordered if share > 0)
