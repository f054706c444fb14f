"""The axes of stills: from a figure's values, numbers or names, to pixels; and their ticks."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .wire import numbers_of

_MARKUP = re.compile(r"</?(?:b|i|sup|sub|span|br)\b[^>]*>")


class Axis:
    """One axis: from values (numbers or names) to pixels, and its ticks."""

    def __init__(
        self,
        spec: dict[str, Any],
        letter: str,
        traces: Sequence[dict[str, Any]],
        shapes: Sequence[dict[str, Any]] = (),
    ):
        self.spec, self.letter = spec, letter
        self.title = (spec.get("title") or {}).get("text", "")
        self.labelled = spec.get("showticklabels", True)
        self.log = spec.get("type") == "log"
        self.names: list[str] = []
        found: list[float] = []
        for trace in traces:
            values = trace.get(letter)
            if isinstance(values, (list, tuple)) and any(isinstance(v, str) for v in values):
                self.names += [v for v in map(str, values) if v not in self.names]
            else:
                found += [float(v) for v in self._numbers(values) if math.isfinite(v)]
            if trace["type"] == "bar" and (trace.get("orientation") == "h") == (letter == "x"):
                found.append(0.0)
        if self.names:
            low, high = -0.5, len(self.names) - 0.5
        else:
            low, high = (min(found), max(found)) if found else (0.0, 1.0)
            maps = any(t["type"] == "heatmap" for t in traces)
            if found and not maps:  # lines across the picture have to be in it
                ends = [s[f"{letter}{i}"] for s in shapes if s.get(f"{letter}ref") != "paper" for i in (0, 1)]
                found += [float(v) for v in self._numbers(ends) if math.isfinite(v)]
                low, high = min(found), max(found)
            steps = np.unique(found)
            pad = float(np.diff(steps).min()) / 2 if maps and len(steps) > 1 else 0.04 * (high - low) or 0.5
            low, high = low - (0.0 if low == 0.0 and not maps else pad), high + pad
        if isinstance(spec.get("range"), (list, tuple)) and len(spec["range"]) == 2:
            low, high = map(float, spec["range"])
        elif spec.get("autorange") == "reversed":
            low, high = high, low
        self.low, self.high = low, high
        self.first, self.last = 0.0, 1.0

    def _numbers(self, values: Any) -> np.ndarray:
        array = numbers_of(values)
        array = np.asarray([], float) if array is None else np.asarray(array, float).ravel()
        if not self.log:
            return array
        return np.log10(np.where(array > 0, array, np.nan))

    def values(self, values: Any) -> list[float]:
        """Places on the axis before they become pixels; NaN where there is none."""
        if isinstance(values, (list, tuple)) and any(isinstance(v, str) for v in values):
            return [float(self.names.index(str(v))) for v in values]
        return [float(v) for v in self._numbers(values)]

    def place(self, first: float, last: float) -> None:
        """Say which pixels the axis takes."""
        self.first, self.last = first, last

    def pixel(self, value: float) -> float:
        """Where a place is."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.first + share * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        """Places and their labels."""
        if "tickvals" in self.spec:
            texts = self.spec.get("ticktext")
            values = self.values(self.spec["tickvals"])
            return list(zip(values, map(plain, texts) if texts is not None else map(self._text, values)))
        if self.names:
            return [(float(i), plain(name)) for i, name in enumerate(self.names)]
        low, high = sorted((self.low, self.high))
        span = high - low
        if not math.isfinite(span) or span <= 0:
            return []
        if self.log and span > 0.5:  # 1, 2 and 5 of each power of ten, or only the powers
            marks = (1, 2, 5) if span < 4 and self.spec.get("dtick") != 1 else (1,)
            places = [p + math.log10(m) for p in range(math.floor(low), math.ceil(high) + 1) for m in marks]
            return [(place, self._text(place)) for place in places if low <= place <= high]
        raw = span / 5
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
        first = math.ceil(low / step - 1e-9)
        return [(i * step, self._text(i * step)) for i in range(first, first + 12) if i * step <= high + 1e-9 * span]

    def _text(self, value: float) -> str:
        if self.log:
            return f"{10**value:.3g}"
        form = str(self.spec.get("tickformat", ""))
        if form.endswith("%"):
            return f"{100 * value:.0f} %"
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"


def plain(text: Any) -> str:
    """The words that plotly would show: its few tags and entities undone."""
    return html.unescape(_MARKUP.sub("", str(text)))
