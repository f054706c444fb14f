"""What a model costs and loses in other precisions, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..inspection.precision import InPrecision, PrecisionCost
from .numbers import signed

IN_CACHES = 16_000_000
"""Bytes of weights that a processor's caches commonly hold."""


def above_fp32(way: InPrecision) -> str:
    """The loss above that of fp32 with its interval, where there is one."""
    digits = _digits(way.more_margin)
    margin = f" ± {way.more_margin:.{digits}f}" if math.isfinite(way.more_margin) else ""
    return f"{signed(way.more, digits, plus=True)}{margin}"


def precision_summary(cost: PrecisionCost) -> str:
    """What there is to learn from these numbers, as far as they tell anything."""
    plain, *others = cost.ways
    words = []
    for way in others:
        size, speed = plain.nbytes / way.nbytes, way.tokens_per_second / plain.tokens_per_second
        if way.can_be_told:
            digits = _digits(way.more_margin)
            loss = f"predicts {'worse' if way.more > 0 else 'better'} by "
            loss += f"{abs(way.more):.{digits}f} ± {way.more_margin:.{digits}f} nats a token"
            loss += f" ({100 * abs(way.more) / plain.loss:.2g} % of its loss)" if plain.loss > 0 else ""
        elif math.isfinite(way.more_margin):
            loss = f"what it costs in loss cannot be told from this text ({above_fp32(way)})"
        else:
            loss = f"one window cannot tell what it costs in loss ({above_fp32(way)})"
        pace = "about as fast" if 0.8 <= speed <= 1.25 else f"{speed:.2g} times as fast"
        if way.parts_at is not None and not way.can_be_told:
            loss += f"; yet its greedy text parts from fp32's at token {way.parts_at + 1}"
        words.append(f"{way.name}: {size:.2g} times smaller, {pace} here, and {loss}.")
    if cost.in_fp32:
        words.append("This model's matrices are small: they are rounded and then multiplied in fp32.")
    if plain.nbytes < IN_CACHES and all(way.tokens_per_second < 1.25 * plain.tokens_per_second for way in others):
        words.append("Weights this few stay in the processor's caches: reading them is not what takes the time.")
    return " ".join(words)


def describe_level_counts(name: str, shape: Sequence[int], counts: Sequence[int], middle_half: int) -> str:
    """Which matrix it is, how much of the range its weights use, and what of it nothing uses."""
    empty = sum(count == 0 for count in counts)
    rows, columns = shape
    words = (
        f"{name}: {rows:,} × {columns:,} weights, each row with 255 levels of its own, from minus its largest weight "
        f"to plus. Half of all weights lie between levels −{middle_half} and {middle_half}"
    )
    words += f"; {empty} of the levels hold{'s' * (empty == 1)} none." if empty else "; no level is empty."
    ends = int(counts[0] + counts[-1])
    return f"{words} At the two ends lie the rows' largest weights and what rounds to the same level: {ends:,} in all."


def _digits(margin: float) -> int:
    """After the point, so that two digits of the margin stand there."""
    return 5 if not math.isfinite(margin) or margin <= 0 else min(max(1 - math.floor(math.log10(margin)), 5), 9)
