"""Runs of many people who changed one thing: groups that differ only in the seed, and the differences between them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from ..training.verdict import mean_interval, student_t

ENOUGH = 3
"""Fewest runs for a useful interval: with two, it is nine times their spread."""
COMPARED = 4
"""Most groups that are compared with the unchanged runs."""


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seed."""

    label: str
    losses: tuple[float, ...]
    """The loss of each run in nats per token, above the floor if the texts differ."""
    names: tuple[str, ...]
    """Whose runs they are."""
    own: bool = False
    """Whether these are the settings that everybody was given."""

    @property
    def mean(self) -> float:
        """Mean of the losses."""
        return statistics.fmean(self.losses)

    @property
    def spread(self) -> float:
        """Standard deviation from seed to seed; NaN for one run."""
        return statistics.stdev(self.losses) if len(self.losses) > 1 else math.nan

    @property
    def margin(self) -> float | None:
        """Half the width of the mean's 95 % interval; None if there are too few runs."""
        return float(mean_interval(self.losses)[1]) if len(self.losses) >= ENOUGH else None


@dataclass(frozen=True)
class Experiment:
    """The results of runs that changed one thing or nothing."""

    thing: str
    """seed, size or text."""
    groups: tuple[Group, ...]
    above_floor: bool
    """Whether losses are differences from their text's best possible loss."""
    left_out: int
    """How many runs repeated a seed, changed something else as well, or cannot be compared."""

    def differences(self) -> Iterator[tuple[Group, Group, float, float]]:
        """(group, unchanged group, difference of their means, half the width of its interval) for each large group.

        Welch's 95 % intervals, with degrees of freedom rounded down, and Bonferroni's correction if there are several.
        """
        large = [group for group in self.groups if group.margin is not None]
        own = next((group for group in large if group.own), None)
        others = [group for group in large if group is not own] if own else []
        for group in others[:COMPARED]:
            errors = [g.spread**2 / len(g.losses) for g in (group, own)]
            if total := sum(errors):
                freedom = total**2 / sum(e**2 / (len(g.losses) - 1) for e, g in zip(errors, (group, own)))
                t = student_t(max(int(freedom), 1), 1 - 0.05 / len(others))
                yield group, own, group.mean - own.mean, t * math.sqrt(total)
