"""Where the parameters are: bars by component, beside GPT-2 small's 124,439,808."""

from __future__ import annotations

from collections.abc import Mapping

from ..words.numbers import percent, size
from . import palette
from .shapes import FIXED, UPSIDE_DOWN, Figure, axis, bar, figure, hidden
from .wire import escaped

GPT2_SMALL = 124_439_808


def parameter_bars(components: Mapping[str, int]) -> Figure:
    """One horizontal bar per component that has parameters (`ModelConfig.parameters_by_component()`)."""
    kept = {name: count for name, count in components.items() if count}
    total = sum(kept.values()) or 1
    names, counts = list(kept), list(kept.values())
    labels = [f"{size(count)} · {percent(count / total)}" for count in counts]
    colors, hover = [_color(name) for name in names], "%{y}: %{x:,} parameters<extra></extra>"
    return figure(
        [bar(counts, [escaped(name) for name in names], colors, hover, lying=True, text=labels)],
        56 + 34 * max(1, len(names)),
        narrow={"margin.r": 96},
        margin={"l": 8, "r": 120, "t": 8, "b": 8},
        bargap=0.42,
        xaxis=hidden(range=[0, max(counts, default=1)]),
        yaxis=axis(showgrid=False, ticklabelstandoff=6, **UPSIDE_DOWN, **FIXED),
        uirevision=str(names),
    )


def parameter_rows(components: Mapping[str, int]) -> list[list[str]]:
    """The table beside the bars: component, parameters, share of this model, % of GPT-2 small; the total last."""
    total = sum(components.values())
    rows = [_row(name, count, total) for name, count in components.items() if count]
    return [*rows, _row("total", total, total)]


def describe_parameters(components: Mapping[str, int]) -> str:
    """The largest component, and the size beside GPT-2 small."""
    total = sum(components.values())
    if not total:
        return "This model has no trainable numbers."
    name, count = max(components.items(), key=lambda item: item[1])
    return (
        f"{total:,} trainable numbers, {percent(total / GPT2_SMALL)} of GPT-2 small; "
        f"most of them ({percent(count / total)}) are in the {name}."
        if count * 2 > total
        else f"{total:,} trainable numbers, {percent(total / GPT2_SMALL)} of GPT-2 small; "
        f"the largest part ({percent(count / total)}) is the {name}."
    )


def _row(name: str, count: int, total: int) -> list[str]:
    return [name, f"{count:,}", percent(count / total if total else 0.0), percent(count / GPT2_SMALL)]


def _color(name: str) -> str:
    if name in ("experts", "routers"):
        return palette.MOE
    if name == "attention":
        return palette.SCORES
    return palette.DENSE if name == "feed-forward" else palette.FAINT
