"""Pace: how long the steps of a run take."""

from __future__ import annotations

from collections import deque


class Pace:
    """Seconds per step, over the last second and over the whole run."""

    def __init__(self, began: float):
        """`began`: the run's seconds when its first step begins."""
        self.began, self.seconds, self.steps = began, 0.0, 0
        self._recent: deque[float] = deque()

    def add(self, seconds: float) -> None:
        """Count one more step, which took `seconds`."""
        self.seconds, self.steps = self.seconds + seconds, self.steps + 1
        self._recent.append(seconds)
        while sum(self._recent) - self._recent[0] >= 1.0:
            self._recent.popleft()

    @property
    def per_step(self) -> float:
        """Mean seconds per step over the last second, or of the last step if that took longer."""
        return sum(self._recent) / len(self._recent)

    def time_left(self, now: float, steps: int) -> float:
        """Estimated seconds for that many further steps, including evaluations and samples between them.

        now: the run's seconds.
        """
        between = (now - self.began - self.seconds) / self.steps
        return (self.per_step + max(between, 0.0)) * steps
