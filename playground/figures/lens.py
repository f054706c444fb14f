"""What layers think: the lens as a table of guesses, and the residual stream's length on its way up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..words.numbers import percent, signed
from . import palette
from .shapes import FIXED, UPSIDE_DOWN, Figure, axis, cells, frame, heatmap, line, lines, names, slanted
from .wire import escaped, shortened

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
) -> Figure:
    """Stage × token: in each cell the stage's best guess, coloured by how probable it finds the followed answer.

    Args:
        probabilities, ranks: (S, T) of the followed answer.
        guesses: S rows of T texts.
        tokens: labels of the columns; answers: what is followed in each.
        chosen: (stage, column) of a cell to frame; stage may be left at the last.
    """
    S, T = np.shape(probabilities)
    hover = [
        [
            f"{escaped(stages[s])}, after {escaped(tokens[t])}<br>best guess “{escaped(guesses[s][t])}”<br>"
            f"“{escaped(answers[t])}”: rank {int(ranks[s][t]):,}"
            for t in range(T)
        ]
        for s in range(S)
    ]
    trace = cells(
        probabilities,
        "%{hovertext}, probability %{z:.4f}",
        bar="probability",
        ticks={"tickvals": [0, 0.5, 1]},
        text=None if T > _MOST_GUESSES else [[escaped(shortened(guess, 8)) for guess in row] for row in guesses],
        hovertext=hover,
    )
    return heatmap(
        trace,
        max(200, 120 + 30 * S),
        slanted(tokens, "after reading"),
        names(stages, length=22, **UPSIDE_DOWN),
        frames=[] if chosen is None else [frame((0, S - 1), chosen[1])],
        uirevision=f"{S} {T}",
    )


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
        led = [stages[i] for i in np.flatnonzero(places == 1)]
        so = f"It led at {led[-1]}" if led else "It never leads"
        return f"{path} and {percent(chances[-1])} in the end, with rank {int(places[-1]):,}. {so}."
    if stage == 0:
        end, moves = percent(chances[-1]), "raise" if chances[-1] > chances[0] else "lower"
        so = f"the layers {moves} it to {end}" if end != percent(chances[0]) else "the layers do not change it"
        return f"{path} and leads from the start. {so[0].upper()}{so[1:]}."
    rise = int(np.diff(chances).argmax())
    points = signed(100 * np.diff(chances)[rise], 1, plus=True)
    words = f"{path} (rank {int(places[0]):,}). It takes the lead for good at {stages[stage]} and ends with "
    rises = f" It rises most at {stages[rise + 1]} ({points} points)." if np.diff(chances)[rise] > 0 else ""
    return f"{words}{percent(chances[-1])}.{rises}"


def norm_lines(norms: np.ndarray, stages: Sequence[str], labels: Sequence[str], chosen: int) -> Figure:
    """Length of the residual stream by stage (S, T): the chosen token's line, and the mean of all."""
    norms, x = np.asarray(norms, dtype=np.float64), list(range(len(stages)))
    look = {"marks": 6, "hover": "%{y:.3f}"}
    mean = line(x, norms.mean(axis=1), "mean of all tokens", palette.FAINT, dash="dash", width=1.6, **look)
    return lines(
        [mean, line(x, norms[:, chosen], labels[chosen], palette.DENSE, width=2.4, **look)],
        220,
        names(stages, **FIXED, length=22),
        axis("length", rangemode="tozero", **FIXED),
        margin={"l": 48, "r": 12, "t": 30, "b": 30},
        uirevision=str(len(stages)),
    )


def describe_norms(norms: np.ndarray, stages: Sequence[str], chosen: int) -> str:
    """How much longer the stream became, and where."""
    line = np.asarray(norms, dtype=np.float64)[:, chosen]
    if len(line) < 2 or line[0] == 0:
        return "The residual stream's length."
    rise = int(np.diff(line).argmax())
    grows = f". It grows most at {stages[rise + 1]} (+{np.diff(line)[rise]:.2f})" if np.diff(line)[rise] > 0 else ""
    return (
        f"The residual stream of this token goes from length {line[0]:.2f} to {line[-1]:.2f} "
        f"({line[-1] / line[0]:.{1 if line[-1] >= line[0] else 2}f} times){grows}."
    )
