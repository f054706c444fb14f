"""Next-token candidates: before and after training, at several temperatures, and through the sampling steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..words.numbers import percent
from . import palette
from .shapes import FIXED, Figure, axis, bar, figure, legend, note, nth, panels
from .shapes import names as named
from .wire import escaped, numbers, shortened

_ROW = 26
"""Pixels per candidate."""


def next_tokens(
    labels: Sequence[str],
    probabilities: Sequence[float],
    before: Sequence[float] | None = None,
    *,
    names: tuple[str, str] = ("before training", "after training"),
    chosen: int | None = None,
) -> Figure:
    """Horizontal bars, one candidate per row in the given order, with the probability before as a second, pale bar.

    Args:
        labels: visible token texts (␣ ⏎); equal texts stay separate rows.
        probabilities: one per label, 0 … 1.
        before: the same tokens' probabilities earlier; None draws one bar each.
        chosen: row of the token that was drawn; marked with ▸ and the highlight colour.
    """
    top = max([*probabilities, *(before or ()), 0.01])
    colors = [palette.HIGHLIGHT if row == chosen else palette.DENSE for row in range(len(labels))]
    traces = [_bars(probabilities, "probability" if before is None else names[1], colors, labels)]
    if before is not None:
        traces.insert(0, _bars(before, names[0], palette.FAINT, labels, opacity=0.7))
    return figure(
        traces,
        (44 if before is None else 72) + (_ROW if before is None else _ROW + 10) * max(1, len(labels)),
        margin={"l": 8, "r": 16, "t": 8 if before is None else 34, "b": 28},
        bargap=0.3,
        bargroupgap=0.08,
        xaxis=axis(range=[0, min(1.18 * top, 1.12)], tickformat=".0%", nticks=6, **FIXED),
        yaxis=_rows(labels, chosen),
        **({} if before is None else legend(traceorder="normal")),
        uirevision="rows",
    )


def describe_next_tokens(
    labels: Sequence[str],
    probabilities: Sequence[float],
    before: Sequence[float] | None = None,
    *,
    when: str = "now",
) -> str:
    """The most probable token at that time, and how its probability changed."""
    if not len(labels):
        return "There are no candidates."
    best = max(range(len(labels)), key=lambda i: probabilities[i])
    words = f"Most probable {when}: “{labels[best]}” with {percent(probabilities[best])}"
    if before is not None:
        first = max(range(len(labels)), key=lambda i: before[i])
        now, then = percent(probabilities[best]), percent(before[best])
        moved = "up from" if probabilities[best] > before[best] else "down from"
        words += ", as before" if now == then else f", {moved} {then}"
        if first != best:
            ahead = sum(p > before[best] for p in before) - 1
            others = f" and {ahead} other{'s' * (ahead > 1)} shown here" if ahead else ""
            words += f"; before, “{labels[first]}”{others} {'were' if ahead else 'was'} ahead of it"
    return words + "."


def describe_leaders(
    labels: Sequence[str],
    probabilities: Sequence[float],
    before: Sequence[float],
    *,
    names: tuple[str, str] = ("before", "now"),
) -> str:
    """The most probable token at each of two times, the earlier one first."""
    first, best = (max(range(len(labels)), key=lambda i: chances[i]) for chances in (before, probabilities))
    then, now, was = percent(before[first]), percent(probabilities[best]), percent(before[best])
    if first == best:
        return f"Most probable {names[0]} and {names[1]}: “{labels[best]}”, with {then} and {now}."
    words = f"Most probable {names[0]}: “{labels[first]}” with {then}"
    return f"{words}; {names[1]}: “{labels[best]}” with {now} ({was} then)."


def temperature_comparison(labels: Sequence[str], by_temperature: Mapping[float, Sequence[float]]) -> Figure:
    """The same candidates at each temperature, as panels side by side on one probability axis."""
    stages = [
        (f"T = {t:g}", _bars(by_temperature[t], f"temperature {t:g}", palette.SCORES, labels))
        for t in sorted(by_temperature)
    ]
    return _side_by_side(stages, {"range": [0, 2], "tickvals": [0, 1], "ticktext": ["0", "100 %"]}, _rows(labels))


def describe_temperatures(labels: Sequence[str], by_temperature: Mapping[float, Sequence[float]]) -> str:
    """How much of the probability the first candidate holds at the lowest and the highest temperature."""
    if not by_temperature or not len(labels):
        return "There are no candidates."
    low, high = min(by_temperature), max(by_temperature)
    best = max(range(len(labels)), key=lambda i: by_temperature[low][i])
    if low == high:
        return f"At temperature {low:g} “{labels[best]}” has {percent(by_temperature[low][best])}."
    return (
        f"“{labels[best]}” has {percent(by_temperature[low][best])} at temperature {low:g} and "
        f"{percent(by_temperature[high][best])} at {high:g}. A higher temperature keeps the order."
    )


def _side_by_side(stages: Sequence[tuple[str, dict[str, Any]]], x: dict[str, Any], rows: dict[str, Any]) -> Figure:
    """Bars of the same candidates in panels with titles, each on an axis such as `x`."""
    domains, ink = panels(max(1, len(stages))), {"color": palette.INK, "size": 12}
    return figure(
        [{**bars, "xaxis": nth("x", i), "yaxis": "y"} for i, (_, bars) in enumerate(stages)],
        64 + _ROW * max(1, len(rows["tickvals"])),
        margin={"l": 8, "r": 8, "t": 28, "b": 28},
        bargap=0.3,
        annotations=[note(title, x=start, **ink) for (title, _), (start, _) in zip(stages, domains)],
        yaxis=rows,
        uirevision="rows",
        **{nth("xaxis", i): axis(domain=domain, **x, **FIXED) for i, domain in enumerate(domains)},
    )


def _bars(
    values: Sequence[float], name: str, color: str | list[str], labels: Sequence[str], opacity: float = 1.0
) -> dict[str, Any]:
    hover = f"%{{customdata}}<br>{name}: %{{x:.4f}}<extra></extra>"
    rows, texts = numbers(range(len(values)), "i2"), [percent(value) for value in values]
    bars = bar(values, rows, color, hover, name=name, lying=True, text=texts)
    bars["marker"]["opacity"] = opacity
    return {**bars, "customdata": [escaped(label) for label in labels]}


def _rows(labels: Sequence[str], chosen: int | None = None) -> dict[str, Any]:
    """The axis of candidates: one place per row, so that equal texts stay apart; the first on top."""
    texts = [("▸ " if i == chosen else "") + shortened(label) for i, label in enumerate(labels)]
    ink = {"size": 12, "color": palette.INK}
    return named(texts, length=16, range=[len(labels) - 0.5, -0.5], ticklabelstandoff=6, tickfont=ink, **FIXED)
