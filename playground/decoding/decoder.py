"""The decoder: generate(model, prompt, …) yields one DecodeStep per token, from a preallocated KV cache or without one.

N = samples decoded at once, V = vocabulary, T = context length. The model reads in two ways: a `window`, such as the
prompt ("prefill"), and the `newest` token of each text, which follows those in the cache
(see `model/kernels/reading.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from ..data.tokenizers import Tokenizer
from ..model import KVCache, Transformer
from ..model.kernels.reading import Reading, reading
from .continuation import Continuation, DecodeStep, choose
from .sampling import SamplingConfig


def generate(
    model: Transformer,
    prompt: Sequence[int],
    max_new_tokens: int,
    sampling: SamplingConfig | None = None,
    *,
    n_samples: int = 1,
    tokenizer: Tokenizer | None = None,
    stop: Sequence[str] = (),
    use_cache: bool = True,
    when_full: str = "slide",
    slide_by: int = 1,
    precision: str = "fp32",
) -> Iterator[DecodeStep]:
    """Continue `prompt` token by token.

    A prompt longer than the context is cropped to its last T tokens. Once the context is full, `when_full="slide"`
    drops the oldest `slide_by` tokens and goes on; "stop" ends the text. Sliding with a cache rebuilds it from the
    cropped tokens: even where positions are relative, a cached key of a deeper layer still knows of the tokens that
    fell out, and positions that are added would all be off by one. So the tokens equal those of `use_cache=False`
    always; `slide_by` larger than 1 makes rebuilding rarer. With `stop` strings (which need the `tokenizer`), a sample
    that has written one is over; when all are, generation ends. A model without a causal mask is decoded without cache.
    With a `precision` of bf16 or int8, matrices are multiplied so (see `model/kernels/packed.py`).

    Raises ValueError, before the first step, where prompt or numbers make no sense.
    """
    device = next(model.parameters()).device
    continuation = Continuation(
        model.config, prompt, max_new_tokens, sampling, n_samples=n_samples, tokenizer=tokenizer, stop=stop,
        use_cache=use_cache, when_full=when_full, slide_by=slide_by, device=device,
    )  # fmt: skip
    return _steps(reading(model, precision), continuation, device)


def _steps(read: Reading, continuation: Continuation, device: torch.device) -> Iterator[DecodeStep]:
    cache = (
        KVCache.allocate(continuation.config, continuation.n_samples, device=device) if continuation.cached else None
    )
    while not continuation.over:
        with torch.inference_mode():
            continuation.begin()
            if continuation.logits is None:  # at the beginning, or the oldest tokens fell out
                continuation.has_read_window(read.window(continuation.window, cache))
            choose([continuation])
            if continuation.full and cache is not None:
                cache.truncate(0)  # the next step reads its window anew
            elif cache is not None:
                continuation.has_read_newest(read.newest(continuation.newest, cache))
            step = continuation.step()
        yield step


def count_projections(prompt: int, new_tokens: int) -> tuple[int, int]:
    """(without, with a cache): Q, K and V vectors per layer to write `new_tokens` after `prompt` tokens.

    Without a cache every step projects the whole text so far; with one every token of the text is projected once.

    >>> count_projections(5, 3)
    (54, 24)
    >>> count_projections(5, 500)
    (381750, 1515)
    """
    return 3 * sum(prompt + step for step in range(new_tokens)), 3 * (prompt + new_tokens)
