"""The loss curve as SVG, for a model's card on the Hub, where no script runs."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from . import palette
from .loss import GUTTER, Run, bucket_means, bucket_size, called

WIDTH, HEIGHT = 960, 480
_LEFT, _TOP, _BOTTOM = 52, 34, 40
_DASHES = {"dash": "4 3", "dot": "1 3"}
_LINE = 15
"""Pixels between two words below each other."""
Scale = Callable[[float], float]
"""From numbers to pixels along one axis."""


def curve_svg(run: Run, rungs: Sequence[tuple[str, float]] = ()) -> str:
    """Batch loss, training and validation loss over the steps, and the baselines, in light colours on white.

    `rungs`: (name, nats per token) from worst to best, as `Baselines.losses()` gives them.
    """
    color, evaluations = palette.of_kind(run.kind), run.evaluations
    size = bucket_size(len(run.steps["step"]))
    steps, losses = (bucket_means(run.steps[name], size).tolist() for name in ("step", "loss"))
    series = [
        ("batch loss", steps, losses, palette.FAINT, 1.2, ""),
        ("training", evaluations["step"], evaluations["train_loss"], color, 1.6, "dot"),
        ("validation", evaluations["step"], evaluations["val_loss"], color, 2.6, ""),
    ]
    values = [value for _, _, y, *_ in series for value in y] + [value for _, value in rungs]
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    room = 0.05 * (max(known) - min(known)) or 0.5
    low, high, last = min(known) - room, max(known) + room, max((step for _, x, *_ in series for step in x), default=1)
    end = WIDTH - (GUTTER if rungs else 20)
    x, y = _scale(0, last or 1, _LEFT, end), _scale(low, high, HEIGHT - _BOTTOM, _TOP)
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    for tick in _ticks(low, high):
        parts += [_rule(end, y(tick), palette.GRID), _text(_LEFT - 8, y(tick) + 4, f"{tick:.6g}", anchor="end")]
    parts += [_text(x(tick), HEIGHT - 22, f"{tick:,.6g}", anchor="middle") for tick in _ticks(0, last or 1)]
    parts += [_text((_LEFT + end) / 2, HEIGHT - 5, "step", anchor="middle"), _text(_LEFT, 12, "loss")]
    under = -math.inf
    for name, value in rungs:
        floor, at = name == "floor", y(value)
        parts.append(_rule(end, at, palette.HIGHLIGHT if floor else palette.FAINT, "" if floor else "dash"))
        under = max(at + 4, under + _LINE)
        label = f"{called(name)} {value:.3f}" if floor else f"{called(name)} {value:.2f}"
        parts.append(_text(end + 6, under, label, palette.HIGHLIGHT if floor else palette.MUTED))
    right = end
    for name, at, losses, *look in reversed(series):
        parts += _curve(at, losses, x, y, *look)
        right -= 6.2 * len(name)
        parts += [_text(right, 12, name), _path([(right - 24, 8), (right - 5, 8)], *look)]
        right -= 36
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="A chart of the loss" font-size="11" font-family="system-ui, sans-serif">{"".join(parts)}</svg>'
    )


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two, four to ten."""
    rough = (high - low) / 5
    decade = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * decade for factor in (1, 2, 5, 10) if factor * decade >= rough)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _curve(steps: Sequence[float], losses: Sequence[float], x: Scale, y: Scale, *look) -> Iterator[str]:
    """A line in pieces: where a loss is no number, there is a gap."""
    points = [(x(step), y(loss)) if math.isfinite(loss) else None for step, loss in zip(steps, losses)]
    cuts = [-1, *(i for i, point in enumerate(points) if point is None), len(points)]
    return (_path(points[a + 1 : b], *look) for a, b in pairwise(cuts) if b > a + 1)


def _path(points: Sequence[tuple[float, float]], color: str, width: float, dash: str = "") -> str:
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{_DASHES[dash]}"' if dash else ""
    return f'<path d="M{way}" fill="none" stroke="{color}" stroke-width="{width}"{dashed}/>'


def _rule(end: float, at: float, color: str, dash: str = "") -> str:
    return _path([(_LEFT, at), (end, at)], color, 1, dash)


def _text(x: float, y: float, words: str, color: str = palette.MUTED, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{html.escape(words)}</text>'
