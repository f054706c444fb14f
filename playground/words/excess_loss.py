"""Excess loss: which tokens carry most of the loss above the best possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.excess_loss import DIVIDED, MOSTLY, NOTHING, UNCLEAR

FEW = 100
"""Below this many tokens, the sentence says how many were counted."""


def excess_sentences(excess: Sequence[Mapping[str, Any]]) -> str:
    """The records that `ExcessLoss.to_dict` makes, in sentences."""
    return " ".join(map(_sentence, excess))


def _sentence(excess: Mapping[str, Any]) -> str:
    kind, n, unit = excess["kind"], excess["tokens"], excess["unit"]
    if kind == UNCLEAR:
        return "The remaining loss is too uncertain to break down."
    if kind == NOTHING:
        return "Almost nothing is left to learn."
    few = f", counted on only {n} {unit}{'s' * (n != 1)}" if 0 < n < FEW and excess["parts"] else ""
    *names, last = [f"*{name}* ({100 * share:.0f} %)" for name, share, _ in excess["parts"]]
    parts = f"{', '.join(names)} and {last}" if names else last
    if kind in (MOSTLY, DIVIDED):
        return f"The remaining loss {'is mostly' if kind == MOSTLY else 'divides into'} {parts}{few}."
    return f"The remaining loss is spread over many kinds of {unit}s{few}. The largest are {parts}."
