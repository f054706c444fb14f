"""The cache at one step of generation: the queries of this step, and all keys and values held, old and new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .wire import axis, colorscale, escaped, layout, numbers, shortened

_ROLES = (("Q, used once", palette.QUERY), ("K, kept", palette.KEY), ("V, kept", palette.VALUE))


def cache_panels(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, tokens: Sequence[str], held_before: int, room: int
) -> dict[str, Any]:
    """Three panels of one head, a row per token: Q (T, D) of this step only, K and V (S, D) of all tokens held.

    Rows made in this step are framed; the empty rows of Q are queries that are gone; `room` rows are drawn in all, so
    that the cache is seen to fill.
    """
    S, D = np.shape(keys)
    rows = max(room, S)
    full_q = np.full((rows, D), np.nan)
    full_q[held_before:S] = queries
    panels = [full_q, *(np.vstack([x, np.full((rows - S, D), np.nan)]) for x in (keys, values))]
    traces, axes, notes, frames = [], {}, [], []
    gap, width = 0.04, (1 - 0.08) / 3
    for i, (numbers_, (title, color)) in enumerate(zip(panels, _ROLES)):
        suffix, left = "" if i == 0 else str(i + 1), i * (width + gap)
        finite = np.abs(numbers_[np.isfinite(numbers_)])
        limit = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
        traces.append(
            {
                "type": "heatmap",
                "z": numbers(numbers_),
                "xaxis": f"x{suffix}",
                "yaxis": "y",
                "zmin": -limit,
                "zmax": limit,
                "colorscale": colorscale(palette.DIVERGING_SCALE),
                "showscale": False,
                "ygap": 1,
                "hoverongaps": False,
                "hovertemplate": f"{title[0]} of %{{y}}, number %{{x}}: %{{z:.4f}}<extra></extra>",
            }
        )
        axes[f"xaxis{suffix}"] = axis(
            domain=[left, min(1.0, left + width)], showgrid=False, nticks=4, fixedrange=True, anchor="y"
        )
        frames.append(
            {
                "type": "rect",
                "xref": f"x{suffix}",
                "yref": "y",
                "x0": -0.5,
                "x1": D - 0.5,
                "y0": held_before - 0.5,
                "y1": S - 0.5,
                "line": {"color": color, "width": 2.5},
            }
        )
        notes.append(
            {
                "text": title,
                "xref": "paper",
                "yref": "paper",
                "x": left,
                "y": 1,
                "xanchor": "left",
                "yanchor": "bottom",
                "yshift": 4,
                "showarrow": False,
                "font": {"size": 12, "color": color},
            }
        )
    labels = [*(f"{i} {shortened(token)}" for i, token in enumerate(tokens[:S])), *([""] * (rows - S))]
    stride = max(1, -(-rows // 40))
    places = list(range(0, rows, stride))
    return {
        "data": traces,
        "layout": layout(
            int(min(720, max(240, 70 + 22 * rows))),
            margin={"l": 8, "r": 8, "t": 30, "b": 24},
            narrow={"yaxis.tickfont.size": 9, "annotations.0.font.size": 10, "annotations.1.font.size": 10,
                    "annotations.2.font.size": 10},
            yaxis=axis(
                tickvals=places, ticktext=[escaped(labels[i]) for i in places], range=[rows - 0.5, -0.5],
                showgrid=False, fixedrange=True,
            ),
            plot_bgcolor=palette.BAND,
            annotations=notes,
            shapes=frames,
            uirevision=f"{rows} {D}",
            **axes,
        ),
    }  # fmt: skip


def describe_cache(tokens: Sequence[str], held_before: int, held: int, most: int, weight: float) -> str:
    """What is new, what is reused, and which kept token the newest query listens to most."""
    new = held - held_before
    made = f"“{tokens[held - 1]}”" if new == 1 else f"the {new} tokens of the prompt"
    words = f"Made in this step: Q, K and V of {made}."
    if held_before:
        tokens_before = f"{held_before} earlier token{'s' * (held_before > 1)}"
        words += f" Reused without any work: K and V of {tokens_before}; their Q are gone."
    return f"{words} The newest query listens most to {most} “{tokens[most]}” ({weight:.2f})."
