"""generate(model, prompt, …) yields one DecodeStep per token, from a preallocated KV cache or without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..model import KVCache, Transformer
from .inference_model import InferenceModel, inference_model
from .request import DecodeStep, Request, choose
from .sampling import SamplingConfig


def generate(
    model: Transformer,
    prompt: Sequence[int],
    max_new_tokens: int,
    sampling: SamplingConfig | None = None,
    *,
    precision: str = "fp32",
    **options: Any,
) -> Iterator[DecodeStep]:
    """Continue `prompt` token by token; the options are those of `Request`.

    With a `precision` of bf16 or int8, weights are rounded to it (see `model/kernels/packed.py`); the model stays
    unchanged. With a `tap`, every pass is edited as if it read the whole text. Raises ValueError, before the first
    step, if the prompt or the numbers make no sense.
    """
    return steps_of(model, Request(model.config, prompt, max_new_tokens, sampling, **options), precision)


def steps_of(model: Transformer, request: Request, precision: str = "fp32") -> Iterator[DecodeStep]:
    """Write one request by itself. A `ContinuousBatch` with one request writes the same tokens at 0.7 of the speed (0.8
    million parameters, one thread): it locks, changes threads, and masks rows that might differ in length."""
    return _steps(inference_model(model, precision), request)


def _steps(model: InferenceModel, request: Request) -> Iterator[DecodeStep]:
    cache = KVCache.allocate(model.config, request.n_samples, device=model.device) if request.cached else None
    while not request.over:
        with torch.inference_mode():
            request.begin()
            if request.needs_prefill:
                if cache is not None:
                    cache.clear()
                logits = model.prefill(torch.tensor(request.window, device=model.device), cache, request.tap)
            else:
                logits = model.decode_one(torch.tensor(request.newest, device=model.device), cache, request.tap)
            step = request.step(*choose([request], [logits]))
        yield step


def count_projections(prompt: int, new_tokens: int) -> tuple[int, int]:
    """(without, with a cache): Q, K, V vectors per layer to write `new_tokens` after `prompt` tokens, and to read them.

    Without a cache every step projects the whole text so far; with one every token of the text is projected once.

    >>> count_projections(5, 3)
    (54, 24)
    >>> count_projections(5, 500)
    (381750, 1515)
    """
    return 3 * sum(prompt + step for step in range(new_tokens)), 3 * (prompt + new_tokens)
