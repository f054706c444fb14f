"""Samples and snapshots: observers of the loop that look at the model between two steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from ..engine import SamplingConfig, generate
from .events import Finished, Sampled, Snapshotted, TrainEvent

if TYPE_CHECKING:
    from .loop import Run


def snapshot(run: Run, event: TrainEvent) -> Iterator[TrainEvent]:
    """Keep the weights, at `snapshots` moments."""
    if not isinstance(event, Finished) and run.step in run.config.snapshot_steps():
        state = {name: t.detach().to("cpu", torch.float16) for name, t in run.model.state_dict().items()}
        yield Snapshotted(run.step, run.seconds, state)


def sample(run: Run, event: TrainEvent) -> Iterator[TrainEvent]:
    """Let the model continue the prompt every `sample_every` steps, and at the end unless the run diverged."""
    config, tokenizer = run.config, run.corpus.tokenizer
    ended = isinstance(event, Finished) and event.reason != "diverged" and config.sample_every > 0
    due = ended or (not isinstance(event, Finished) and run.due(config.sample_every))
    if not due or run.step in [record["step"] for record in run.history.samples[-1:]]:
        return
    prompt = tokenizer.encode(config.sample_prompt) or [int(run.windows["val"][0][0, 0])]
    sampling = SamplingConfig(temperature=config.sample_temperature, seed=config.seed)
    written: list[int] = []
    for step in generate(run.model, prompt, config.sample_tokens, sampling):
        written.append(step.tokens[0])
        if written[-1] in run.corpus.ends:
            break  # the model never learned what follows a document's end
    shown = tokenizer.decode(prompt) if config.sample_prompt else ""  # otherwise the first token is part of the sample
    text = tokenizer.decode(prompt + written)[len(shown) :]
    yield Sampled(run.step, run.seconds, prompt=shown, text=text)
