"""Skills: the share of a model's writing that is right, measured as it learns.

A loss falls smoothly; a skill appears at some step. So from time to time the model writes a handful of sums, stories or
lines, which are parsed. In a run of a minute or more that takes at most a thirtieth of the training time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from ..data.corpus import Corpus
from ..data.judging import ParsedText, Share, judge
from ..engine import SamplingConfig, generate
from ..model import Transformer
from .events import Evaluated, SkillMeasured, TrainEvent

MOST_TIME = 0.03
"""Share of the training's own time that judging may take."""
WRITTEN, AT_THE_END = 16, 32
"""How many units the model writes at a time, while it learns and when it has finished."""
TEMPERATURE = 1.0
"""The units are sampled at this temperature: from the model's own probabilities."""
LONGEST = {"char": 320, "word": 80}
"""Tokens within which a unit has to end, by tokenizer. One in ten thousand of the languages' own units is longer."""


def judged(
    events: Iterator[TrainEvent],
    model: Transformer,
    corpus: Corpus,
    at: type[TrainEvent] = Evaluated,
) -> Iterator[TrainEvent]:
    """Pass the events on, and after some of kind `at`, when the model rests, add a SkillMeasured."""
    spent = last = 0.0  # seconds: in all, and the last time
    for event in events:
        yield event
        if not isinstance(event, at) or not event.step:
            continue
        room = MOST_TIME * event.seconds - spent
        if last > room:
            continue
        began = time.perf_counter()
        share = share_right(model, corpus, WRITTEN, seed=event.step, until=began + room)
        last = time.perf_counter() - began
        spent += last
        if share.of:
            yield SkillMeasured(event.step, event.seconds, share.right, share.of)
        else:  # judging ran out of time: wait until there is twice as much
            last *= 2


def judged_in_the_end(event: TrainEvent, model: Transformer, corpus: Corpus) -> SkillMeasured:
    """Judge the finished model more thoroughly, after the event that says it is finished."""
    share = share_right(model, corpus, AT_THE_END, seed=event.step)
    return SkillMeasured(event.step, event.seconds, share.right, share.of)


def share_right(model: Transformer, corpus: Corpus, n: int, seed: int = 0, until: float = math.inf) -> Share:
    """How many of `n` sums, stories or lines that the model writes are right; 0 of 0 without a grammar.

    Each begins after a line break. An unfinished one that is too long counts if it is already wrong. If the clock
    (`time.perf_counter`) passes `until`, none are judged.
    """
    tokenizer = corpus.tokenizer
    if corpus.language is None or tokenizer.kind not in LONGEST or not model.config.causal:
        return Share(0, 0)
    length, forgets = LONGEST[tokenizer.kind], max(model.config.context_length // 8, 1)  # tokens at a time, when full
    begun, sampling = tokenizer.encode("\n"), SamplingConfig(temperature=TEMPERATURE, seed=seed)
    rows: list[list[int]] = [[] for _ in range(n)]
    over = [False] * n

    def found(row: list[int]) -> ParsedText:
        return judge(corpus.language, tokenizer.decode(row), spaced=tokenizer.kind != "word")

    written = generate(model, begun, length, sampling, n_samples=n, tokenizer=tokenizer, stop=["\n"], slide_by=forgets)
    for step in written:
        if time.perf_counter() > until:
            return Share(0, 0)
        for i, token in enumerate(step.tokens):
            if not over[i]:
                rows[i].append(token)
                over[i] = token == begun[0]
        if step.index % 32 == 31:  # a unit that is already wrong need not be finished
            over = [done or found(row).fault is not None for done, row in zip(over, rows)]
            if all(over):
                break
    judged = [found(row) for row in rows]
    return sum((one.share if one.share.of else Share(0, int(one.fault is not None)) for one in judged), Share(0, 0))
