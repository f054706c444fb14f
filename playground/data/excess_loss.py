"""The loss above the best possible, and which tokens carry it.

N, T = validation windows and their targets. In our languages every target has a kind: the rule that decides it. The
model's loss beyond the exact model's own surprise is summed by kind; these sums add up to its loss minus the floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .baselines import NOTHING_LEFT

NOTHING, UNCLEAR, MOSTLY, DIVIDED, SPREAD = "nothing", "unclear", "mostly", "divided", "spread"
"""What can be said of an excess: there is none; it is too uncertain; a few parts carry more than half of it, and more
than their share of the tokens; it divides into few parts; or it is spread over many."""
KINDS = (NOTHING, UNCLEAR, MOSTLY, DIVIDED, SPREAD)


@dataclass(frozen=True)
class Partition:
    """The counted targets of some windows, each assigned to one part."""

    names: tuple[str, ...]
    part: np.ndarray
    """(N, T) int: each target's part; −1 if the target does not count."""
    unavoidable: np.ndarray
    """(N, T) the loss of the text's own generator, in nats."""

    def rows(self, some: np.ndarray) -> Partition:
        """The partition of some windows only."""
        return Partition(self.names, self.part[some], self.unavoidable[some])


@dataclass(frozen=True)
class Part:
    """What one part carries."""

    name: str
    share_of_tokens: float
    nats: float
    """Its summed excess ÷ the number of all tokens, so that the parts add up to the whole excess."""
    by_window: np.ndarray
    """(N,) the same per window, to tell chance from a real difference."""


@dataclass(frozen=True)
class ExcessLoss:
    """A model's loss above the best possible, by part, the largest first."""

    nats: float
    """The whole excess, per token."""
    error: float
    """Standard error of `nats`, from the spread between windows."""
    parts: tuple[Part, ...]
    unit: str = "token"
    tokens: int = 0
    """The number of tokens on which it was measured."""

    def kind(self) -> tuple[str, tuple[Part, ...]]:
        """NOTHING, UNCLEAR, MOSTLY, DIVIDED or SPREAD, and the parts that show it."""
        if not self.parts or not np.isfinite(self.nats):
            return UNCLEAR, ()
        if self.nats < NOTHING_LEFT or self.nats + 2 * self.error < 4 * NOTHING_LEFT:
            return NOTHING, ()
        if self.nats < 2 * self.error:
            return UNCLEAR, ()
        largest = self._largest()
        together = sum(map(self.share, largest))
        if (
            together >= 0.5
            and all(self.share(part) > part.share_of_tokens for part in largest)
            and (together < 0.995 or len(largest) == 1)
        ):
            return MOSTLY, largest
        every = tuple(part for part in self.parts if self.share(part) >= 0.005)
        return (DIVIDED, every) if len(every) <= 3 else (SPREAD, largest)

    def share(self, part: Part) -> float:
        """The part's share of the excess loss, 0 … 1."""
        return min(max(part.nats / self.nats, 0.0), 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the verdict, and the parts that support it, each with its name and shares."""
        kind, parts = self.kind()
        shares = [[p.name, round(self.share(p), 4), round(float(p.share_of_tokens), 4)] for p in parts]
        return {"kind": kind, "parts": shares, "unit": self.unit, "tokens": self.tokens}

    def _largest(self) -> tuple[Part, ...]:
        """The fewest parts that make up half, at most three; a part whose rank may be luck brings the next along."""
        for n in range(1, min(3, len(self.parts)) + 1):
            last, following = self.parts[n - 1], self.parts[n] if n < len(self.parts) else None
            tied = following is not None and last.nats - following.nats < 2 * _error(
                last.by_window - following.by_window
            )
            if sum(map(self.share, self.parts[:n])) >= 0.5 and not (n < 3 and tied):
                break
        return self.parts[:n]


def excess_loss(losses: np.ndarray, partition: Partition, unit: str = "token") -> ExcessLoss:
    """The excess of losses (N, T) in nats, by the parts of the partition."""
    counted = partition.part >= 0
    tokens = max(int(counted.sum()), 1)
    nats = np.where(counted, losses - partition.unavoidable, 0.0)
    parts = []
    for number, name in enumerate(partition.names):
        within = partition.part == number
        if within.any():
            by_window = np.where(within, nats, 0.0).sum(axis=1) / tokens
            parts.append(Part(name, within.sum() / tokens, float(by_window.sum()), by_window))
    parts.sort(key=lambda part: -part.nats)
    error = _error(nats.sum(axis=1) / tokens)
    return ExcessLoss(float(nats.sum() / tokens), error, tuple(parts), unit, int(counted.sum()))


def is_excess(values: Any) -> bool:
    """Whether these values from a file have the form that `ExcessLoss.to_dict` gives."""
    if not isinstance(values, dict) or set(values) != {"kind", "parts", "unit", "tokens"}:
        return False
    texts, parts = (values["kind"], values["unit"]), values["parts"]
    if not all(isinstance(text, str) and len(text) < 100 for text in texts) or not isinstance(parts, list):
        return False
    if values["kind"] not in KINDS or (len(parts) == 0) != (values["kind"] in (NOTHING, UNCLEAR)) or len(parts) > 20:
        return False
    if type(values["tokens"]) is not int or values["tokens"] < 0:
        return False
    return all(
        isinstance(part, list)
        and len(part) == 3
        and isinstance(part[0], str)
        and len(part[0]) < 100
        and all(type(share) in (int, float) and 0 <= share <= 1 for share in part[1:])
        for part in parts
    )


def _error(by_window: np.ndarray) -> float:
    """The standard error of a sum over windows."""
    n = len(by_window)
    return float(np.sqrt(n) * by_window.std(ddof=1)) if n > 1 else float("inf")
