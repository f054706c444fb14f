"""Followers: how often a page looks at work that goes on."""

from __future__ import annotations

# seconds between looks at what has not taken its first step, at what soon ends, and at what goes on for a while
FIRST_TICK, TICK, SLOW_TICK = 0.2, 0.4, 1.5
WAIT_TICK = 3.0  # of those in line
LONG = 15.0  # seconds left that make the difference


def tick(time_left: float | None, *, waits: bool = False) -> float:
    """Seconds until the next look at work that has so many seconds left: each look takes time from the training.

    None is work that has not begun: its first point is waited for, but not by those who still stand in line.
    """
    if waits:
        return WAIT_TICK
    if time_left is None:
        return FIRST_TICK
    return SLOW_TICK if time_left > LONG else TICK


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd …"""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
