"""With and without the cache: the same text decoded twice, token by token, so that times and tokens can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model import Transformer
from .continuation import DecodeStep
from .decoder import generate
from .sampling import SamplingConfig


def with_and_without_cache(
    model: Transformer, prompt: Sequence[int], max_new_tokens: int, sampling: SamplingConfig | None = None
) -> Iterator[tuple[DecodeStep, DecodeStep]]:
    """Pairs of steps, cached and uncached, taken in turn so that a busy machine slows both alike."""
    cached = generate(model, prompt, max_new_tokens, sampling)
    plain = generate(model, prompt, max_new_tokens, sampling, use_cache=False)
    return zip(cached, plain)
