"""Pace: how long the steps of a run take."""

from __future__ import annotations

from collections import deque

MINUTE = 60.0
"""Seconds of steps that a forecast rests on: others may come and go on the machine."""


class Pace:
    """Seconds per step, over the last second, the last minute and the whole run."""

    def __init__(self, began: float):
        """`began`: the run's seconds when its first step begins."""
        self.began, self.seconds, self.steps = began, 0.0, 0
        self._recent: deque[float] = deque()
        self._minute: deque[float] = deque()
        self._in_minute = 0.0

    def add(self, seconds: float) -> None:
        """Count one more step, which took `seconds`."""
        self.seconds, self.steps = self.seconds + seconds, self.steps + 1
        if self.steps == 2:  # the first step also got everything ready
            self._recent.clear()
            self._minute.clear()
            self._in_minute = 0.0
        self._recent.append(seconds)
        while sum(self._recent) - self._recent[0] >= 1.0:
            self._recent.popleft()
        self._minute.append(seconds)
        self._in_minute += seconds
        while self._in_minute - self._minute[0] >= MINUTE:
            self._in_minute -= self._minute.popleft()

    @property
    def per_step(self) -> float:
        """Mean seconds per step over the last second, or of the last step if that took longer."""
        return sum(self._recent) / len(self._recent)

    def time_left(self, now: float, steps: int) -> float:
        """Estimated seconds for further steps at the last minute's pace, evaluations and samples included.

        now: the run's seconds.
        """
        between = (now - self.began - self.seconds) / self.steps
        return (self._in_minute / len(self._minute) + max(between, 0.0)) * steps
