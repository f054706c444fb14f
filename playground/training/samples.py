"""Samples and snapshots: what is taken from a model while it rests between two steps, as events among the run's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from ..decoding import SamplingConfig, generate
from .events import Rested, Sampled, Snapshotted, TrainEvent

if TYPE_CHECKING:
    from .trainer import Run


def sampled(run: Run, events: Iterator[TrainEvent]) -> Iterator[TrainEvent]:
    """The same events, and a sample every `sample_every` steps."""
    for event in events:
        if isinstance(event, Rested) and run.due(run.config.sample_every):
            yield _sample(run)
        yield event


def snapshotted(run: Run, events: Iterator[TrainEvent]) -> Iterator[TrainEvent]:
    """The same events, and the weights of `snapshots` moments."""
    moments = set(run.config.snapshot_steps())
    for event in events:
        if isinstance(event, Rested) and event.step in moments:
            state = {name: t.detach().to("cpu", torch.float16) for name, t in run.model.state_dict().items()}
            yield Snapshotted(run.step, run.seconds, state)
        yield event


def _sample(run: Run) -> Sampled:
    config, tokenizer = run.config, run.corpus.tokenizer
    ends = run.corpus.ends
    prompt = tokenizer.encode(config.sample_prompt) or [int(run.windows["val"][0][0, 0])]
    sampling = SamplingConfig(temperature=config.sample_temperature, seed=config.seed)
    written: list[int] = []
    for step in generate(run.model, prompt, config.sample_tokens, sampling):
        written.append(step.tokens[0])
        if written[-1] in ends:
            break  # of what follows a document's end the model has learned nothing
    shown = tokenizer.decode(prompt) if config.sample_prompt else ""  # else the first token is part of the sample
    text = tokenizer.decode(prompt + written)[len(shown) :]
    return Sampled(run.step, run.seconds, prompt=shown, text=text)
