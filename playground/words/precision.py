"""Precision: what a model costs and loses in other number formats."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..inspection.precision import InPrecision, PrecisionCost
from .numbers import signed


def above_fp32(way: InPrecision) -> str:
    """The loss above that of fp32, with its interval if there is one."""
    digits = _digits(way.more_margin)
    margin = f" ± {way.more_margin:.{digits}f}" if math.isfinite(way.more_margin) else ""
    return f"{signed(way.more, digits, plus=True)}{margin}"


def precision_summary(cost: PrecisionCost) -> str:
    """What these numbers show, and no more."""
    plain, *others = cost.ways
    words = []
    for way in others:
        size, speed = plain.nbytes / way.nbytes, way.tokens_per_second / plain.tokens_per_second
        pace = "about as fast" if 0.8 <= speed <= 1.25 else f"{speed:.2g} times as fast"
        words.append(f"{way.name}: {size:.2g} times smaller and {pace} here. {_loss(way, plain)}")
    return " ".join(words)


def _loss(way: InPrecision, plain: InPrecision) -> str:
    """How the loss of one way differs from fp32's."""
    if not way.can_be_told:
        why = "Too close to call" if math.isfinite(way.more_margin) else "One window is not enough to compare losses"
        return f"{why}: {above_fp32(way)}."
    digits = _digits(way.more_margin)
    share = f" ({100 * abs(way.more) / plain.loss:.2g} %)" if plain.loss > 0 else ""
    side = "higher" if way.more > 0 else "lower"
    return f"Its loss is {abs(way.more):.{digits}f} ± {way.more_margin:.{digits}f} {side}{share}."


def describe_level_counts(name: str, shape: Sequence[int], middle_half: int) -> str:
    """Which matrix it is, and how much of the range its weights use."""
    return (
        f"{name}: {shape[0]:,} × {shape[1]:,} weights; each row has its own 255 levels up to its largest weight. "
        f"Half of all weights are between levels −{middle_half} and {middle_half}."
    )


def _digits(margin: float) -> int:
    """Decimals that show two digits of the margin."""
    return 5 if not math.isfinite(margin) or margin <= 0 else min(max(1 - math.floor(math.log10(margin)), 5), 9)
