"""Excess loss: which tokens carry most of the loss above the best possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.excess_loss import DIVIDED, MOSTLY, NOTHING, UNCLEAR
from .numbers import listed


def excess_sentences(excess: Sequence[Mapping[str, Any]]) -> str:
    """The records that `ExcessLoss.to_dict` makes, in sentences."""
    return " ".join(filter(None, map(_sentence, excess)))


def _sentence(excess: Mapping[str, Any]) -> str:
    kind, unit = excess["kind"], excess["unit"]
    if kind in (UNCLEAR, NOTHING):
        return ""
    parts = listed([f"*{name}* ({100 * share:.0f} %)" for name, share, _ in excess["parts"]])
    if kind in (MOSTLY, DIVIDED):
        return f"The remaining loss {'is mostly' if kind == MOSTLY else 'divides into'} {parts}."
    return f"The remaining loss is spread over many kinds of {unit}s. The largest are {parts}."
