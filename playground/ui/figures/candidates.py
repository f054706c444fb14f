"""Next-token candidates: before and after training, at several temperatures, and through the sampling steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def next_tokens(
    labels: Sequence[str],
    probabilities: Sequence[float],
    before: Sequence[float] | None = None,
    *,
    names: tuple[str, str] = ("before training", "after training"),
    chosen: int | None = None,
) -> dict[str, Any]:
    """Horizontal bars, one candidate per row in the given order, with the probability before as a second, pale bar.

    Args:
        labels: visible token texts (␣ ⏎); equal texts stay separate rows.
        probabilities: one per label, 0 … 1.
        before: the same tokens' probabilities earlier; None draws one bar each.
        chosen: row of the token that was drawn; marked with ▸ and the highlight colour.
    """
    raise NotImplementedError


def describe_next_tokens(
    labels: Sequence[str], probabilities: Sequence[float], before: Sequence[float] | None = None
) -> str:
    """The most probable token, and how its probability changed."""
    raise NotImplementedError


def temperature_comparison(labels: Sequence[str], by_temperature: Mapping[float, Sequence[float]]) -> dict[str, Any]:
    """The same candidates at each temperature, as panels side by side on one probability axis."""
    raise NotImplementedError


def describe_temperatures(labels: Sequence[str], by_temperature: Mapping[float, Sequence[float]]) -> str:
    """How much of the probability the first candidate holds at the lowest and the highest temperature."""
    raise NotImplementedError


def sampling_steps(rows: Sequence[Mapping[str, Any]], *, chosen: int | None = None) -> dict[str, Any]:
    """The step table as bars: raw, tempered and final probability per candidate.

    Args:
        rows: mappings with `label`, `raw_probability`, `tempered_probability`, `probability`, `removed_by` (None or
            the rule's name), as `decoding.explain` gives them plus the label. Removed rows are pale and say by what.
        chosen: index into `rows` of the drawn token.
    """
    raise NotImplementedError


def describe_sampling_steps(rows: Sequence[Mapping[str, Any]], *, chosen: int | None = None) -> str:
    """How many candidates each rule removed and how probable the chosen one was."""
    raise NotImplementedError
