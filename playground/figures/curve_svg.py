"""The loss curve as SVG, for pages without scripts: a run's report and a model's card on the Hub."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from . import palette
from .loss import GUTTER, Run, best_name, bucket_means, bucket_size, called

_LEFT, _TOP, _BOTTOM = 52, 34, 40
_DASHES = {"dash": "4 3", "dot": "1 3"}
_LINE = 15
"""Pixels between two labels, one below the other."""


def curve_svg(
    run: Run,
    rungs: Sequence[tuple[str, float]] = (),
    *,
    words: str = "",
    log_y: bool = False,
    width: int = 760,
    height: int = 320,
    themed: bool = True,
) -> str:
    """Batch loss, training and validation loss over the steps, and the baselines.

    Args:
        rungs: (name, nats per token) from worst to best, as `Baselines.losses()` gives them.
        words: what the picture shows, for readers who cannot see it.
        width, height: in pixels; in a page the picture shrinks to fit.
        themed: use the colours of `colours_css`, light and dark; otherwise the light ones, on white.
    """
    series = _series(run)
    losses = [value for each in series for value in each.y] + [value for _, value in rungs]
    known = [value for value in losses if math.isfinite(value) and (value > 0 or not log_y)]
    right = GUTTER if rungs else 20
    y = _Scale.over(known or [0.1, 1.0], height - _BOTTOM, _TOP, log_y)
    x = _Scale(0, max((step for each in series for step in each.x), default=1) or 1, _LEFT, width - right)
    parts = [] if themed else [f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for tick in y.ticks():
        parts += [_rule(x, y.at(tick), palette.GRID), _text(_LEFT - 8, y.at(tick) + 4, f"{tick:.6g}", anchor="end")]
    parts += [_text(x.at(tick), height - 22, f"{tick:,.6g}", anchor="middle") for tick in x.ticks()]
    parts += [_text((x.start + x.end) / 2, height - 5, "step", anchor="middle")]
    parts += [_text(_LEFT, 12, f"loss{' (log scale)' * log_y}")]
    under = -math.inf
    for name, value in rungs:
        floor = name == "floor"
        color, at = palette.HIGHLIGHT if floor else palette.FAINT, y.at(value)
        parts.append(_rule(x, at, color, "" if floor else "dash"))
        under = max(at + 4, under + _LINE)
        said = f"{called(name)} {value:.3f}" if floor else f"{called(name)} {value:.2f}"
        parts.append(_text(x.end + 6, under, said, color if floor else palette.MUTED))
    parts += [path for each in series for path in each.drawn(x, y)]
    parts += _legend(series, x.end)
    if run.best is not None:
        parts += [_dot(x.at(run.best[0]), y.at(run.best[1]), palette.INK, 4)]
    drawn = "".join(parts) if themed else re.sub(r"var\(--c\w+, (#\w+)\)", r"\1", "".join(parts))
    label = html.escape(words or "A chart of the loss", quote=True)
    return (
        f'<svg class="still" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}" font-size="11" font-family="system-ui, sans-serif">{drawn}</svg>'
    )


def colours_css() -> str:
    """The palette as CSS variables: light, and dark if the reader's system is dark."""
    light = " ".join(f"--c{color[1:]}: {color};" for color in palette.DARK)
    dark = " ".join(f"--c{color[1:]}: {partner};" for color, partner in palette.DARK.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"


def _ink(color: str) -> str:
    return f"var(--c{color[1:]}, {color})"


@dataclass(frozen=True)
class _Scale:
    """Converts numbers to pixels along one axis."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, log: bool) -> _Scale:
        """A scale that covers all these numbers, with a little room."""
        low, high = min(values), max(values)
        if log:
            room = (high / low) ** 0.05 if high > low else 1.5
            return cls(low / room, high * room, start, end, log)
        room = 0.05 * (high - low) or 0.5
        return cls(low - room, high + room, start, end)

    def at(self, value: float) -> float:
        """The pixel of a number."""
        low, high, value = (math.log(each) for each in (self.low, self.high, value)) if self.log else (
            self.low, self.high, value
        )  # fmt: skip
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Four to ten round numbers along the axis."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
            found = [factor * 10.0**decade for decade in decades for factor in (1, 2, 5)]
        else:
            rough = (self.high - self.low) / 5
            decade = 10.0 ** math.floor(math.log10(rough))
            step = next(factor * decade for factor in (1, 2, 5, 10) if factor * decade >= rough)
            found = [i * step for i in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        return [tick for tick in found if self.low <= tick <= self.high]


@dataclass(frozen=True)
class _Series:
    """One line of the chart."""

    name: str
    color: str
    width: float
    dash: str
    x: Sequence[float]
    y: Sequence[float]
    marks: bool = False

    def drawn(self, x: _Scale, y: _Scale) -> Iterator[str]:
        """The line's pieces: a loss that is not a number leaves a gap."""
        points = [
            (x.at(step), y.at(loss)) if math.isfinite(loss) and (loss > 0 or not y.log) else None
            for step, loss in zip(self.x, self.y)
        ]
        cuts = [-1, *(i for i, point in enumerate(points) if point is None), len(points)]
        for before, after in pairwise(cuts):
            if piece := points[before + 1 : after]:
                yield _path(piece, self.color, self.width, self.dash)
        if self.marks:
            yield from (_dot(*point, self.color) for point in points if point is not None)


def _series(run: Run) -> list[_Series]:
    color, evaluations = palette.of_kind(run.kind), run.evaluations
    size = bucket_size(len(run.steps["step"]))
    steps, losses = (bucket_means(run.steps[name], size).tolist() for name in ("step", "loss"))
    best = (
        [] if run.best is None else [_Series(best_name(run.best), palette.INK, 4, "", *([each] for each in run.best))]
    )
    return [
        _Series("batch loss", palette.FAINT, 1.2, "", steps, losses),
        _Series("training", color, 1.6, "dot", evaluations["step"], evaluations["train_loss"]),
        _Series("validation", color, 2.6, "", evaluations["step"], evaluations["val_loss"], True),
        *best,
    ]


def _legend(series: Sequence[_Series], end: float) -> list[str]:
    """The legend above the picture, at its right end."""
    parts: list[str] = []
    for each in reversed(series):
        end -= 6.2 * len(each.name)
        parts += [_text(end, 12, each.name), _path([(end - 24, 8), (end - 5, 8)], each.color, each.width, each.dash)]
        end -= 36
    return parts


def _path(points: Sequence[tuple[float, float]], color: str, width: float, dash: str) -> str:
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashed = f"; stroke-dasharray: {_DASHES[dash]}" if dash else ""
    return f'<path d="M{way}" style="fill: none; stroke: {_ink(color)}; stroke-width: {width}{dashed}"/>'


def _rule(x: _Scale, at: float, color: str, dash: str = "") -> str:
    return _path([(x.start, at), (x.end, at)], color, 1, dash)


def _dot(x: float, y: float, color: str, radius: float = 2.5) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" style="fill: {_ink(color)}"/>'


def _text(x: float, y: float, words: str, color: str = palette.MUTED, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} style="fill: {_ink(color)}">{html.escape(words)}</text>'
