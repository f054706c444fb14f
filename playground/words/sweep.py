"""Sweeps: which value of a setting predicts best, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..studies.sweep import Row, behind, best_of, complete, lead_of
from ..training.verdict import CERTAINTY
from .numbers import listed
from .result import Result
from .verdict import loss_in_words


def sweep_result(rows: Sequence[Row], name: str) -> Result:
    """The best value, its loss over the seeds, and whether the next best is clearly worse."""
    best, lead = best_of(rows), lead_of(rows)
    if best is None:
        return Result("No value worked: every run diverged." if rows else "Nothing has been tried yet.")
    seeds = len(best.losses)
    number = f"Validation loss with {best.value}: {loss_shown(best)}, over {seeds} seed{'s' * (seeds != 1)}."
    if len(complete(rows)) == 1:
        return Result(f"{name}: only {best.value} is finished so far.", number)
    if lead is None:
        return Result(f"{name} {best.value} is best: all other runs diverged.", number)
    second, difference, margin = lead
    if math.isinf(margin):
        details = f"With {second.value}, the loss is {difference:.4f} higher. With one seed, this may be luck."
        return Result(f"{name} {best.value} is ahead, with one seed.", number, details)
    interval = f"The ± is a {CERTAINTY} % interval, comparing the runs seed by seed"
    if difference > margin:
        details = f"Next is {second.value}: its loss is {difference:.4f} ± {margin:.4f} higher. {interval}."
        return Result(f"{name} {best.value} is the best of the {len(rows)} tried.", number, details)
    details = f"The two best differ by {difference:.4f} ± {margin:.4f}, which luck can explain. {interval}."
    others = [(row.value, *behind(row, best)) for row in complete(rows) if row is not best]
    alike = [best.value, *(value for value, more, margin in others if more <= margin)]
    worse = [row.value for row in complete(rows) if row.value not in alike]
    number += f" Clearly worse: {listed([str(value) for value in worse])}." if worse else ""
    said = listed([str(value) for value in alike]) if len(alike) < 5 else f"{len(alike)} of the values"
    return Result(f"{name}: {seeds} seeds cannot tell {said} apart.", number, details)


def loss_shown(row: Row) -> str:
    """A row's mean validation loss and its margin."""
    return loss_in_words(row.mean, row.margin) if math.isfinite(row.mean) else "diverged"


def sweep_lines(rows: Sequence[Row], name: str) -> list[str]:
    """The table for a shell, then what it comes to."""
    lines = [f"  {row.value!s:<20} {loss_shown(row)}" for row in rows]
    return [f"  {name:<20} validation loss", *lines, str(sweep_result(rows, name))]
