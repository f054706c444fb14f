"""What the KV cache saves: milliseconds per token, projections, and the bytes it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..words.numbers import bytes_text
from . import palette
from .shapes import FIXED, UPSIDE_DOWN, Figure, axis, bar, figure, hidden, legend, line, lines, note, rule


def token_times(
    lengths: Sequence[int],
    with_cache: Sequence[float],
    lengths_without: Sequence[int] | None = None,
    without_cache: Sequence[float] = (),
    *,
    context: int | None = None,
) -> Figure:
    """Milliseconds per token against the sequence's length, with the cache (solid) and without (dashed).

    `lengths_without` defaults to the first of `lengths`. A line marks where the model's `context` is full.
    """
    if lengths_without is None:
        lengths_without = lengths[: len(without_cache)]
    curves = [
        line(lengths_without, without_cache, "without the cache", palette.MUTED, dash="dash", hover="%{y:.2f} ms"),
        line(lengths, with_cache, "with the cache", palette.DENSE, hover="%{y:.2f} ms"),
    ]
    return lines(
        curves,
        280,
        axis("tokens so far"),
        axis("ms per token", rangemode="tozero"),
        margin={"l": 52, "r": 12, "t": 30, "b": 44},
        **legend(traceorder="reversed"),
        **_full_at(context, lengths),
    )


def _full_at(context: int | None, lengths: Sequence[int]) -> dict[str, Any]:
    """A mark in a chart over lengths where the context is full; nothing where it never is."""
    if context is None or not len(lengths) or lengths[-1] <= context:
        return {}
    words = note("context full ", x=context, xref="x", xanchor="right", y=0.02)
    return {"shapes": [rule(x=context, dash="dot")], "annotations": [words]}


def describe_token_times(
    lengths: Sequence[int],
    with_cache: Sequence[float],
    without_cache: Sequence[float],
    context: int | None = None,
) -> str:
    """How much faster the cached decoder was until the `context` was full, and what happens then."""
    if not len(with_cache):
        return "Nothing has been generated yet."
    within = len(lengths) if context is None else sum(int(length) <= context for length in lengths)
    beyond = ""
    if within < len(lengths):
        beyond = (
            f" Beyond {context:,} tokens the context is full. Each time, its oldest part falls out. The remaining "
            "keys and values depend on it, so the model rebuilds the cache, which takes longer."
        )
    if within:
        lengths, with_cache, without_cache = lengths[:within], with_cache[:within], without_cache[:within]
    part = max(1, len(with_cache) // 5)

    def median(times: Sequence[float], end: int) -> tuple[float, str]:
        """Of the last so many up to `end`, and of which lengths that is."""
        first, last = int(lengths[max(end - part, 0)]), int(lengths[end - 1])
        where = f"the median of lengths {first:,} to {last:,}" if first < last else f"at length {last:,}"
        return float(np.median(times[max(end - part, 0) : end])), where

    taken, where = median(with_cache, len(with_cache))
    words = f"With the cache a token took {taken:.2f} ms, {where}"
    if len(with_cache) >= 10:
        words += ". At first it took {:.2f} ms, {}".format(*median(with_cache, part))
    if end := min(len(without_cache), len(with_cache)):
        (other, there), (same, _) = median(without_cache, end), median(with_cache, end)
        words += f". Without it {other:.2f} ms" + (f", {there}" if there != where else "")
        words += f", {other / same:.1f} times as long" if same > 0 else ""
    return f"{words}.{beyond}"


def cache_growth(lengths: Sequence[int], nbytes: Sequence[int]) -> Figure:
    """The cache's size in kB or MB against the length of the text."""
    top = max([*nbytes, 1])
    unit, divisor = ("MB", 1e6) if top >= 1e6 else ("kB", 1e3)
    sizes = np.asarray(nbytes, dtype=np.float64) / divisor
    hover = f"%{{x:,.0f}} tokens: %{{y:.4~g}} {unit}<extra></extra>"
    area = line(lengths, sizes, "the cache", palette.VALUE, hover=hover)
    area["line"]["shape"] = "hv"
    return figure([area], 220, xaxis=axis("tokens so far"), yaxis=axis(unit, rangemode="tozero"), uirevision=unit)


def describe_cache_growth(lengths: Sequence[int], nbytes: Sequence[int], held: int | None = None) -> str:
    """Bytes now and bytes per token that it holds: the last length, unless `held` says how many."""
    if not len(nbytes):
        return "The cache is empty."
    held = int(lengths[-1]) if held is None else held
    words = f"{bytes_text(nbytes[-1])} for {held:,} token{'s' * (held != 1)}"
    if held:
        words += f": {bytes_text(nbytes[-1] / held)} for each token"
    if held < lengths[-1]:
        words += ". It holds no more than the context"
    return words + "."


def projection_bars(with_cache: int, without_cache: int) -> Figure:
    """Q, K and V projections counted so far, with and without the cache."""
    counts, places = [with_cache, without_cache], ["with the cache", "without"]
    colors, hover = [palette.DENSE, palette.FAINT], "%{y}: %{x:,} projections<extra></extra>"
    return figure(
        [bar(counts, places, colors, hover, lying=True, text=[f"{count:,}" for count in counts])],
        112,
        margin={"l": 8, "r": 72, "t": 8, "b": 8},
        bargap=0.4,
        xaxis=hidden(rangemode="tozero"),
        yaxis=axis(showgrid=False, ticklabelstandoff=6, **UPSIDE_DOWN, **FIXED),
    )


def describe_projections(with_cache: int, without_cache: int) -> str:
    """The two counts and the share that was saved."""
    if not without_cache:
        return "No projection has been computed yet."
    saved = 100 * (1 - with_cache / without_cache)
    counts = f"{with_cache:,} query, key and value projections instead of {without_cache:,}"
    return f"Per layer {counts}: {saved:.1f} % saved."
