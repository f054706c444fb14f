"""Next-token candidates: before and after training, from two models, or at several temperatures."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..words.numbers import percent, share
from . import palette
from .shapes import FIXED, Figure, axis, bar, figure, hidden, legend, note, nth, panels
from .shapes import names as named
from .wire import escaped, numbers

_ROW = 26
"""Height in pixels of each candidate."""


def next_tokens(
    labels: Sequence[str],
    probabilities: Sequence[float],
    before: Sequence[float] | None = None,
    *,
    names: tuple[str, str] = ("before training", "after training"),
) -> Figure:
    """Horizontal bars, one candidate per row in the given order, with the probability before as a second, pale bar.

    Args:
        labels: visible token texts (␣ ⏎); equal texts stay separate rows.
        probabilities: one per label, 0 … 1.
        before: the same tokens' probabilities earlier; None draws one bar each.
    """
    top = max([*probabilities, *(before or ()), 0.01])
    traces = [_bars(probabilities, "probability" if before is None else names[1], palette.DENSE, labels)]
    if before is not None:
        traces.insert(0, _bars(before, names[0], palette.FAINT, labels, opacity=0.7))
    return figure(
        traces,
        (24 if before is None else 52) + (_ROW if before is None else _ROW + 10) * max(1, len(labels)),
        margin={"l": 8, "r": 16, "t": 8 if before is None else 34, "b": 8},
        bargap=0.3,
        bargroupgap=0.08,
        xaxis=hidden(range=[0, min(1.18 * top, 1.12)]),
        yaxis=_rows(labels),
        **({} if before is None else legend(traceorder="normal")),
        uirevision="rows",
    )


def temperature_comparison(labels: Sequence[str], by_temperature: Mapping[float, Sequence[float]]) -> Figure:
    """The same candidates at each temperature, as panels side by side on one probability axis."""
    temperatures, rows = sorted(by_temperature), _rows(labels)
    domains, ink = panels(max(1, len(temperatures))), {"color": palette.INK, "size": 12}
    rounded = functools.partial(percent, digits=0)
    x = {"range": [0, 1.7], "tickvals": [0, 1], "ticktext": ["0", "100 %"], **FIXED}
    return figure(
        [
            {
                **_bars(by_temperature[t], f"temperature {t:g}", palette.SCORES, labels, text=rounded),
                "xaxis": nth("x", i),
            }
            for i, t in enumerate(temperatures)
        ],
        64 + _ROW * max(1, len(labels)),
        margin={"l": 8, "r": 8, "t": 28, "b": 28},
        bargap=0.3,
        annotations=[note(f"T = {t:g}", x=start, **ink) for t, (start, _) in zip(temperatures, domains)],
        yaxis=rows,
        uirevision="rows",
        **{nth("xaxis", i): axis(domain=domain, **x) for i, domain in enumerate(domains)},
    )


def _bars(
    values: Sequence[float],
    name: str,
    color: str,
    labels: Sequence[str],
    opacity: float = 1.0,
    text: Callable[[float], str] = share,
) -> dict[str, Any]:
    hover = f"%{{customdata}}<br>{name}: %{{x:.4f}}<extra></extra>"
    rows, texts = numbers(range(len(values)), "i2"), [text(value) for value in values]
    bars = bar(values, rows, color, hover, name=name, lying=True, text=texts)
    bars["marker"]["opacity"] = opacity
    return {**bars, "customdata": [escaped(label) for label in labels]}


def _rows(labels: Sequence[str]) -> dict[str, Any]:
    """The axis of candidates: one place per row, so that equal texts stay apart; the first is on top."""
    ink = {"size": 12, "color": palette.INK}
    return named(labels, range=[len(labels) - 0.5, -0.5], ticklabelstandoff=6, tickfont=ink, **FIXED)
