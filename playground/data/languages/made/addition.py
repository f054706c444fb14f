"""addition: sums of two numbers below a hundred. The digits after = are certain for whoever can add."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..graph import Choice, Graph, Language


def choices(state: Hashable) -> Iterator[Choice]:
    """Every sum of two numbers from 0 to 99, equally probable."""
    for a in range(100):
        for b in range(100):
            yield 1, f"{a}+{b}={a + b}\n", state


LANGUAGE = Language(
    name="addition",
    title="Addition",
    note="Sums of two numbers below 100: everything before = is chance, everything after it is certain.",
    prompt="12+34=",
    build=lambda: Graph("sum", choices),
)
