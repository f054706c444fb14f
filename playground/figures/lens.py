"""What layers think: the lens as a table of guesses, and the residual stream's length on its way up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import palette
from .wire import axis, colorbar, colorscale, escaped, layout, numbers, percent, shortened

_MOST_GUESSES = 28
"""More columns than this have no room for words in their cells."""


def lens_map(
    probabilities: np.ndarray,
    ranks: np.ndarray,
    guesses: Sequence[Sequence[str]],
    stages: Sequence[str],
    tokens: Sequence[str],
    answers: Sequence[str],
    *,
    chosen: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Stage × token: in each cell the stage's best guess, coloured by how probable it finds the followed answer.

    Args:
        probabilities, ranks: (S, T) of the followed answer.
        guesses: S rows of T texts.
        tokens: labels of the columns; answers: what is followed in each.
        chosen: (stage, column) of a cell to frame; stage may be left at the last.
    """
    S, T = np.shape(probabilities)
    crowded = T > _MOST_GUESSES
    hover = [
        [
            f"{escaped(stages[s])}, after {escaped(tokens[t])}<br>best guess “{escaped(guesses[s][t])}”<br>"
            f"“{escaped(answers[t])}”: rank {int(ranks[s][t]):,}"
            for t in range(T)
        ]
        for s in range(S)
    ]
    cells = {
        "type": "heatmap",
        "z": numbers(probabilities),
        "colorscale": colorscale(palette.SEQUENTIAL_SCALE),
        "zmin": 0,
        "zmax": 1,
        "xgap": 1,
        "ygap": 1,
        "text": [[escaped(shortened(guess, 8)) for guess in row] for row in guesses],
        "texttemplate": "" if crowded else "%{text}",
        "textfont": {"size": 11},
        "hovertext": hover,
        "hovertemplate": "%{hovertext}, probability %{z:.4f}<extra></extra>",
        "colorbar": colorbar("probability", tickvals=[0, 0.5, 1]),
    }
    stride = max(1, -(-T // 48))
    places = list(range(0, T, stride))
    frame = {}
    if chosen is not None:
        _, column = chosen
        frame["shapes"] = [
            {
                "type": "rect",
                "x0": column - 0.5,
                "x1": column + 0.5,
                "y0": -0.5,
                "y1": S - 0.5,
                "line": {"color": palette.HIGHLIGHT, "width": 2},
            }
        ]
    return {
        "data": [cells],
        "layout": layout(
            max(200, 120 + 30 * S),
            margin={"l": 8, "r": 8, "t": 8, "b": 8},
            narrow={"xaxis.tickfont.size": 9, "yaxis.tickfont.size": 9, "data.0.textfont.size": 8},
            xaxis=axis(
                "after reading", tickvals=places, ticktext=[escaped(shortened(tokens[i])) for i in places],
                tickangle=-60, showgrid=False,
            ),
            yaxis=axis(
                tickvals=list(range(S)), ticktext=[escaped(stage) for stage in stages], autorange="reversed",
                showgrid=False,
            ),
            **frame,
            uirevision=f"{S} {T}",
        ),
    }  # fmt: skip


def describe_lens(
    probabilities: np.ndarray, ranks: np.ndarray, stages: Sequence[str], token: str, answer: str, column: int
) -> str:
    """How the answer after one token came to the lead."""
    chances, places = np.asarray(probabilities)[:, column], np.asarray(ranks)[:, column]
    stage = len(stages)
    while stage > 0 and places[stage - 1] == 1:
        stage -= 1
    path = f"After “{token}”, “{answer}” has {percent(chances[0])} at the {stages[0]}"
    if stage == len(stages):
        return f"{path} and {percent(chances[-1])} in the end, where it is number {int(places[-1]):,}: never the lead."
    if stage == 0:
        return f"{path} and leads from the very start: here the layers only confirm it, to {percent(chances[-1])}."
    rise = int(np.diff(chances).argmax())
    return (
        f"{path} (rank {int(places[0]):,}), takes the lead for good at {stages[stage]} and ends with "
        f"{percent(chances[-1])}. It rises most at {stages[rise + 1]} (+{100 * np.diff(chances)[rise]:.1f} points)."
    )


def norm_lines(norms: np.ndarray, stages: Sequence[str], labels: Sequence[str], chosen: int) -> dict[str, Any]:
    """Length of the residual stream by stage (S, T): the chosen token's line, and the mean of all."""
    norms, x = np.asarray(norms, dtype=np.float64), list(range(len(stages)))
    lines = [
        ("mean of all tokens", norms.mean(axis=1), palette.FAINT, "dash", 1.6),
        (labels[chosen], norms[:, chosen], palette.DENSE, "solid", 2.4),
    ]
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": x,
                "y": numbers(values),
                "name": escaped(name),
                "line": {"color": color, "dash": dash, "width": width},
                "hovertemplate": "%{y:.3f}",
            }
            for name, values, color, dash, width in lines
        ],
        "layout": layout(
            220,
            margin={"l": 48, "r": 12, "t": 30, "b": 30},
            showlegend=True,
            legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 11}},
            xaxis=axis(tickvals=x, ticktext=[escaped(stage) for stage in stages], showgrid=False, fixedrange=True),
            yaxis=axis("length", rangemode="tozero", fixedrange=True),
            hovermode="x unified",
            uirevision=str(len(stages)),
        ),
    }


def describe_norms(norms: np.ndarray, stages: Sequence[str], chosen: int) -> str:
    """How much longer the stream became, and where."""
    line = np.asarray(norms, dtype=np.float64)[:, chosen]
    if len(line) < 2 or line[0] == 0:
        return "The residual stream's length."
    rise = int(np.diff(line).argmax())
    return (
        f"The residual stream of this token goes from length {line[0]:.2f} to {line[-1]:.2f} "
        f"({line[-1] / line[0]:.1f} times); it grows most at {stages[rise + 1]} (+{np.diff(line)[rise]:.2f})."
    )
