"""What the KV cache saves: milliseconds per token, projections, and the bytes it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def token_times(
    lengths: Sequence[int],
    with_cache: Sequence[float],
    lengths_without: Sequence[int] | None = None,
    without_cache: Sequence[float] = (),
    *,
    height: int = 280,
) -> dict[str, Any]:
    """Milliseconds per token against the sequence's length, with the cache (solid) and without (dashed)."""
    raise NotImplementedError


def describe_token_times(lengths: Sequence[int], with_cache: Sequence[float], without_cache: Sequence[float]) -> str:
    """How much faster the cached decoder was at the end, and whether its time stayed flat."""
    raise NotImplementedError


def cache_growth(lengths: Sequence[int], nbytes: Sequence[int], *, height: int = 220) -> dict[str, Any]:
    """The cache's size in KiB or MiB against its length."""
    raise NotImplementedError


def describe_cache_growth(lengths: Sequence[int], nbytes: Sequence[int]) -> str:
    """Bytes now and bytes per further token."""
    raise NotImplementedError


def projection_bars(with_cache: int, without_cache: int) -> dict[str, Any]:
    """Q, K and V projections counted so far, with and without the cache."""
    raise NotImplementedError


def describe_projections(with_cache: int, without_cache: int) -> str:
    """The two counts and the share that was saved."""
    raise NotImplementedError
