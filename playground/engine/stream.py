"""Streaming: a model's continuation as tokens with their texts: one iterator for page, endpoints and shell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..data.tokenizers import Tokenizer
from ..model import Transformer
from .batch import shared_batch
from .generate import steps_of
from .request import DecodeStep, Request
from .sampling import SamplingConfig
from .spelling import Spelling


class NewToken(NamedTuple):
    """One token of one sample."""

    id: int
    text: str
    """What it adds to the text; empty for bytes whose character is still to be completed."""
    probability: float
    """The model's own probability, before any sampling rule."""


class Streamed(NamedTuple):
    """A step of decoding, and what it adds to each sample's text."""

    step: DecodeStep
    new: tuple[NewToken | None, ...]
    """One token per sample; None for a sample that has already written a stop string."""


def stream(
    model: Transformer,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    max_new_tokens: int,
    sampling: SamplingConfig | None = None,
    *,
    n_samples: int = 1,
    shared: bool = False,
    precision: str = "fp32",
    **options: Any,
) -> Iterator[Streamed]:
    """Continue `prompt` as `generate` does, each token with its text, in time linear in the text's length.

    The options are those of `Request`. With `shared`, passes are shared with others (`ContinuousBatch`).

    The texts of a sample's tokens, joined, are what the tokenizer decodes from all of them after the prompt. To stop,
    just stop iterating. Raises ValueError, before the first step, if the prompt or the numbers make no sense.
    """
    options |= {"n_samples": n_samples, "tokenizer": tokenizer}
    request = Request(model.config, prompt, max_new_tokens, sampling, **options)
    steps = shared_batch(model, precision).join(request) if shared else steps_of(model, request, precision)
    return _streamed(steps, [Spelling(tokenizer, prompt) for _ in range(n_samples)], max_new_tokens)


def _streamed(steps: Iterator[DecodeStep], spellings: list[Spelling], max_new_tokens: int) -> Iterator[Streamed]:
    over: Sequence[bool] = [False] * len(spellings)
    for step in steps:
        chances, new = step.model_probability, []
        for i, (spelling, token) in enumerate(zip(spellings, step.tokens)):
            last = step.stopped[i] or step.index == max_new_tokens - 1
            new.append(None if over[i] else NewToken(token, spelling.add(token, last=last), chances[i]))
        over = step.stopped
        yield Streamed(step, tuple(new))
