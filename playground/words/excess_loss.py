"""What is left to learn, in words: which tokens carry most of the loss that a model could still lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.excess_loss import DIVIDED, MOSTLY, NOTHING, UNCLEAR

FEW = 100
"""Tokens below which their number stands beside what they are divided into."""


def excess_clauses(excess: Sequence[Mapping[str, Any]] | str) -> str:
    """Clauses that say where most of a loss is, of the records that `ExcessLoss.to_dict` makes. Runs of earlier
    versions kept the clauses themselves."""
    return excess if isinstance(excess, str) else "; ".join(map(_clause, excess))


def _clause(excess: Mapping[str, Any]) -> str:
    n, unit = excess["tokens"], excess["unit"]
    few = 0 < n < FEW and excess["parts"]
    return f"{_share(excess)}, counted on {n} {unit}{'s' * (n != 1)} only" if few else _share(excess)


def _share(excess: Mapping[str, Any]) -> str:
    kind = excess["kind"]
    if kind == UNCLEAR:
        return "what is left cannot be told"
    if kind == NOTHING:
        return "next to nothing is left"
    parts = _listed(excess)
    if kind == MOSTLY:
        return f"what is left is mostly {parts}"
    if kind == DIVIDED:
        return f"what is left divides into {parts}"
    return f"what is left is spread over many kinds of {excess['unit']}s; the largest are {parts}"


def _listed(excess: Mapping[str, Any]) -> str:
    words = [f"*{name}* ({100 * share:.0f} %)" for name, share, _ in excess["parts"]]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
