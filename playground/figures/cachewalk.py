"""The cache at one step of generation: the queries of this step, and all keys and values held, old and new."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import palette
from .shapes import FIXED, Figure, axis, cells, figure, frame, names, note, nth, panels, reach
from .wire import shortened

_ROLES = (("Q, used once", palette.QUERY), ("K, kept", palette.KEY), ("V, kept", palette.VALUE))


def cache_panels(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, tokens: Sequence[str], held_before: int, room: int
) -> Figure:
    """Three panels of one head, a row per token: Q (T, D) of this step only, K and V (S, D) of all tokens held.

    Rows made in this step are framed; the empty rows of Q are queries that are gone; `room` rows are drawn in all, so
    that the cache is seen to fill.
    """
    S, D = np.shape(keys)
    rows = max(room, S)
    full_q = np.full((rows, D), np.nan)
    full_q[held_before:S] = queries
    parts = [full_q, *(np.vstack([x, np.full((rows - S, D), np.nan)]) for x in (keys, values))]
    traces, axes, notes, frames = [], {}, [], []
    for i, (part, (title, color), domain) in enumerate(zip(parts, _ROLES, panels(3, 0.04))):
        limit, hover = reach(part), f"{title[0]} of %{{y}}, number %{{x}}: %{{z:.4f}}"
        scale = {"scale": palette.DIVERGING_SCALE, "ends": (-limit, limit)}
        traces.append(cells(part, hover, **scale, xgap=0, xaxis=nth("x", i), yaxis="y"))
        axes[nth("xaxis", i)] = axis(domain=domain, showgrid=False, nticks=4, anchor="y", **FIXED)
        frames.append(frame((held_before, S - 1), (0, D - 1), color, xref=nth("x", i), yref="y"))
        notes.append(note(title, x=domain[0], yshift=4, color=color, size=12))
    labels = [*(f"{i} {shortened(token)}" for i, token in enumerate(tokens[:S])), *([""] * (rows - S))]
    narrow = {f"annotations.{i}.font.size": 10 for i in range(3)}
    return figure(
        traces,
        int(min(720, max(240, 70 + 22 * rows))),
        margin={"l": 8, "r": 8, "t": 30, "b": 24},
        narrow={"yaxis.tickfont.size": 9, **narrow},
        yaxis=names(labels, length=20, range=[rows - 0.5, -0.5], **FIXED),
        plot_bgcolor=palette.BAND,
        annotations=notes,
        shapes=frames,
        uirevision=f"{rows} {D}",
        **axes,
    )


def describe_cache(tokens: Sequence[str], held_before: int, held: int, most: int, weight: float) -> str:
    """What is new, what is reused, and which kept token the newest query listens to most."""
    new = held - held_before
    made = f"“{tokens[held - 1]}”" if new == 1 else f"the {new} tokens of the prompt"
    words = f"Made in this step: Q, K and V of {made}."
    if held_before:
        tokens_before = f"{held_before} earlier token{'s' * (held_before > 1)}"
        words += f" Reused without any work: K and V of {tokens_before}; their Q are gone."
    return f"{words} The newest query listens most to {most} “{tokens[most]}” ({weight:.2f})."
