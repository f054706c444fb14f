"""Where the parameters are: bars by component, beside GPT-2 small's 124,439,808."""

from __future__ import annotations

from collections.abc import Mapping

from ..words.pictures import parameter_label
from . import palette
from .shapes import FIXED, UPSIDE_DOWN, Figure, axis, bar, figure, hidden
from .wire import escaped


def parameter_bars(components: Mapping[str, int]) -> Figure:
    """One horizontal bar per component that has parameters (`ModelConfig.parameters_by_component()`)."""
    kept = {name: count for name, count in components.items() if count}
    total = sum(kept.values()) or 1
    names, counts = list(kept), list(kept.values())
    labels = [parameter_label(count, total) for count in counts]
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


def _color(name: str) -> str:
    if name in ("experts", "routers"):
        return palette.MOE
    if name == "attention":
        return palette.SCORES
    return palette.DENSE if name == "feed-forward" else palette.FAINT
