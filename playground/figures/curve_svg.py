"""The loss curve as SVG, for pages without scripts: a run's report and a model's card on the Hub."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import numpy as np

from ..words.baselines import title
from . import palette
from .loss import GUTTER, Run, best_name, bucket_means, bucket_size, height_of

_WIDTH, _HEIGHT = 760, 320
_LEFT, _TOP, _BOTTOM = 52, 34, _HEIGHT - 40
_LINE = 15
"""Pixels between two labels, one below the other."""

Points = Sequence[tuple[float, float]]


def curve_svg(run: Run, rungs: Sequence[tuple[str, float]] = (), *, words: str = "", log_y: bool = False) -> str:
    """Batch loss, training and validation loss over the steps, and the baselines, on white.

    Args:
        rungs: (name, nats per token) from worst to best, as `Baselines.losses()` gives them.
        words: what the picture shows, for readers who cannot see it.
    """
    curves = _curves(run)
    losses = [loss for points, *_ in curves.values() for _, loss in points] + [loss for _, loss in rungs]
    known = [height_of(loss, log_y) for loss in losses] or [0.0]
    room = 0.05 * (max(known) - min(known)) or 0.5
    low, high = min(known) - room, max(known) + room
    last = max((step for points, *_ in curves.values() for step, _ in points), default=1) or 1
    right = _WIDTH - (GUTTER if rungs else 20)

    def x(step: float) -> float:
        return _LEFT + step / last * (right - _LEFT)

    def y(loss: float) -> float:
        return _BOTTOM + (height_of(loss, log_y) - low) / (high - low) * (_TOP - _BOTTOM)

    parts = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>']
    for tick in _log_ticks(low, high) if log_y else _ticks(low, high):
        parts.append(_path([(_LEFT, y(tick)), (right, y(tick))], palette.GRID))
        parts.append(_text(_LEFT - 8, y(tick) + 4, f"{tick:.6g}", anchor="end"))
    parts += [_text(x(tick), _HEIGHT - 22, f"{tick:,.6g}", anchor="middle") for tick in _ticks(0, last)]
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 5, "step", anchor="middle"))
    parts.append(_text(_LEFT, 12, f"loss{' (log scale)' * log_y}"))
    under = -math.inf
    for name, loss in rungs:
        floor = name == "floor"
        parts.append(
            _path([(_LEFT, y(loss)), (right, y(loss))], palette.HIGHLIGHT if floor else palette.FAINT, dashed=not floor)
        )
        under = max(y(loss) + 4, under + _LINE)
        said = f"{title(name)} {loss:.{3 if floor else 2}f}"
        parts.append(_text(right + 6, under, said, palette.HIGHLIGHT if floor else palette.MUTED))
    legend = right
    for name, (points, color, width, dashed) in reversed(curves.items()):
        parts.append(_path([(x(step), y(loss)) for step, loss in points], color, width, dashed))
        legend -= 6.2 * len(name)
        parts += [_text(legend, 12, name), _path([(legend - 24, 8), (legend - 5, 8)], color, width, dashed)]
        legend -= 36
    if run.best is not None:
        at = x(run.best[0]), y(run.best[1])
        parts.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="4" fill="{palette.INK}"/>')
        parts.append(_text(at[0], at[1] - 8, best_name(run.best), anchor="middle"))
    return (
        f'<svg class="still" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{html.escape(words or "A chart of the loss", quote=True)}" font-size="11" '
        f'font-family="system-ui, sans-serif">{"".join(parts)}</svg>'
    )


def _curves(run: Run) -> dict[str, tuple[Points, str, float, bool]]:
    """The curves by name: their points, without losses that are not numbers; colour, width, and whether dashed."""
    color, evaluations, size = palette.of_kind(run.kind), run.evaluations, bucket_size(len(run.steps["step"]))
    steps, losses = (bucket_means(run.steps[name], size).tolist() for name in ("step", "loss"))

    def finite(at: Sequence[float], values: Sequence[float]) -> Points:
        return [(step, loss) for step, loss in zip(at, values) if math.isfinite(loss)]

    return {
        "batch loss": (finite(steps, losses), palette.FAINT, 1.2, False),
        "training": (finite(evaluations["step"], evaluations["train_loss"]), color, 1.6, True),
        "validation": (finite(evaluations["step"], evaluations["val_loss"]), color, 2.6, False),
    }


def _ticks(low: float, high: float) -> list[float]:
    """Four to ten round numbers between these two."""
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(factor * power for factor in (1, 2, 5) if high - low <= 10 * factor * power)
    return (step * np.arange(math.ceil(low / step), math.floor(high / step) + 1)).tolist()


def _log_ticks(low: float, high: float) -> list[float]:
    """Round numbers whose logarithms are between these two."""
    every = [factor * 10.0**power for power in range(math.floor(low), math.ceil(high)) for factor in (1, 2, 5)]
    return [number for number in every if low <= math.log10(number) <= high]


def _path(points: Points, color: str, width: float = 1, dashed: bool = False) -> str:
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<path d="M{way}" fill="none" stroke="{color}" stroke-width="{width}"{dashes}/>' if points else ""


def _text(x: float, y: float, words: str, color: str = palette.MUTED, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{color}">{html.escape(words)}</text>'
