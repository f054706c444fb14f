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
    words = f"{excess['by']}, {_share(excess)}" if excess["by"] else _share(excess)
    n, unit = excess["tokens"], excess["unit"]
    few = 0 < n < FEW and excess["parts"]
    return f"{words}, counted on {n} {unit}{'s' * (n != 1)} only" if few else words


def _share(excess: Mapping[str, Any]) -> str:
    kind, of_loss = excess["kind"], excess["of_loss"]
    if kind == UNCLEAR:
        return "what is left cannot be told"
    if kind == NOTHING:
        return "next to nothing is left"
    whole, parts = "its loss" if of_loss else "what is left", _listed(excess)
    if kind == MOSTLY:
        return f"most of {whole} is at {parts}" if of_loss else f"{whole} is mostly {parts}"
    if kind == DIVIDED:
        return f"{whole} divides into {parts}"
    return f"{whole} is spread over many kinds of {excess['unit']}s; the largest are {parts}"


def _listed(excess: Mapping[str, Any]) -> str:
    words = []
    for name, share, of_tokens in excess["parts"]:
        tokens = f" on {100 * of_tokens:.0f} % of the {excess['unit']}s" if excess["of_loss"] else ""
        words.append(f"*{name}* ({100 * share:.0f} %{tokens})")
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
