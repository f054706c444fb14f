"""One number per head as a map: layers down, heads across."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import palette
from .wire import axis, colorbar, colorscale, escaped, layout, numbers


def head_map(values: np.ndarray, name: str, *, chosen: tuple[int, int] | None = None) -> dict[str, Any]:
    """Scores (L, H) of 0 … 1 on a fixed scale, each written in its cell where there is room; NaN cells are blank.

    Args:
        name: what heads with a high score do, as in "look at the token before".
        chosen: (layer, head) to frame.
    """
    values = np.asarray(values, dtype=np.float64)
    layers, heads = values.shape
    written = layers * heads <= 160
    cells: dict[str, Any] = {
        "type": "heatmap",
        "z": numbers(values),
        "colorscale": colorscale(palette.SEQUENTIAL_SCALE),
        "zmin": 0,
        "zmax": 1,
        "xgap": 2,
        "ygap": 2,
        "hoverongaps": False,
        "hovertemplate": f"layer %{{y}}, head %{{x}}<br>{escaped(name)}: %{{z:.4f}}<extra></extra>",
        "colorbar": colorbar("score", tickvals=[0, 0.5, 1]),
    }
    if written:
        cells |= {"texttemplate": "%{z:.2f}", "textfont": {"size": 11}}
    frame = {}
    if chosen is not None:
        layer, head = chosen
        line = {"color": palette.HIGHLIGHT, "width": 2.5}
        box = {"type": "rect", "x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5, "line": line}
        frame = {"shapes": [box]}
    return {
        "data": [cells],
        "layout": layout(
            int(min(640, 90 + 36 * max(3, layers))),
            margin={"l": 52, "r": 8, "t": 8, "b": 44},
            xaxis=axis("head", dtick=1, showgrid=False),
            yaxis=axis("layer", dtick=1, showgrid=False, autorange="reversed"),
            uirevision=f"{layers} {heads}",
            **frame,
        ),
    }


def describe_head_map(values: np.ndarray, name: str) -> str:
    """How many heads do it, and which does it most."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).any():
        return f"These tokens cannot tell which heads {name}: too few of them come again with something between."
    layer, head = np.unravel_index(int(np.nanargmax(values)), values.shape)
    many = int(np.nansum(values >= 0.4))
    return (
        f"{many} of {values.size} heads {name} with a score of 0.40 or more; most of all layer {layer}, head {head} "
        f"({values[layer, head]:.2f})."
    )


def worth_map(values: np.ndarray, unit: str, *, chosen: tuple[int, int] | None = None) -> dict[str, Any]:
    """What is lost without each head (L, H), on a scale about zero: below it the model is better off without."""
    values = np.asarray(values, dtype=np.float64)
    figure = head_map(values, "lost without it", chosen=chosen)
    most = max(float(np.abs(values).max()), 1e-6)
    figure["data"][0] |= {
        "colorscale": colorscale(palette.DIVERGING_SCALE),
        "zmin": -most,
        "zmax": most,
        "colorbar": colorbar(unit),
    }
    if "texttemplate" in figure["data"][0]:
        figure["data"][0]["texttemplate"] = "%{z:.3f}"
    return figure


def describe_worth(values: np.ndarray, margins: np.ndarray | None, unit: str) -> str:
    """The head that is missed most, and how many matter beyond the interval where there is one."""
    values = np.asarray(values, dtype=np.float64)
    layer, head = np.unravel_index(int(values.argmax()), values.shape)
    if margins is None:
        return f"Missed most: layer {layer}, head {head}, by {values[layer, head]:.4f} {unit}."
    clear = int((values > margins).sum())
    return (
        f"Missed most: layer {layer}, head {head}, by {values[layer, head]:.4f} ± {margins[layer, head]:.4f} {unit}. "
        f"{clear} of {values.size} are missed by more than their interval."
    )
