"""The rule behind each target of some windows, and how surprising it is to the language itself.

N, T = windows and their targets. In our languages every target has a kind: the rule that decides it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Partition:
    """The counted targets of some windows, each assigned to one part."""

    names: tuple[str, ...]
    part: np.ndarray
    """(N, T) int: each target's part; −1 if the target does not count."""
    unavoidable: np.ndarray
    """(N, T) the loss of the text's own generator, in nats."""
