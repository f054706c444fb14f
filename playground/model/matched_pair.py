"""Matched pairs: the width at which a dense model and a mixture of experts cost the same, found by bisection.

That a larger model does better teaches nothing. So one of the two has a free width (the dense model's feed-forward
layer, or the experts'). It is set so that both use equally many parameters per token, have equally many in all, or
take equally many floating-point operations per token. `ModelConfig` counts all three, and all grow with the width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .config import ModelConfig

EQUAL = ("active", "total", "flops")
"""What may be made equal: the parameters that one token uses, all parameters, or operations."""
WIDEST = 1 << 20
TOLERANCE = 0.02
"""Two models whose costs are further apart than this share are no pair."""

COUNTS: dict[str, tuple[str, Callable[[ModelConfig], int]]] = {
    "active": ("active parameters", lambda config: config.n_active_parameters),
    "total": ("parameters in all", lambda config: config.n_parameters),
    "flops": ("operations per token", lambda config: config.flops_per_token()),
}
"""For each thing that may be made equal: what it is called, and how it is counted."""


@dataclass(frozen=True)
class MatchedPair:
    """Two models to compare, and why they are a fair pair."""

    dense: ModelConfig
    moe: ModelConfig
    equal: str
    """One of EQUAL."""
    counted: tuple[int, int]
    """The numbers that were made equal: the dense model's, then the mixture's."""

    @property
    def difference(self) -> float:
        """How far the mixture's number is from the dense model's, as a share of the latter."""
        return self.counted[1] / self.counted[0] - 1


def match_dense(moe: ModelConfig, equal: str = "active") -> MatchedPair:
    """Choose the dense model's `d_ff` so that it costs what this mixture does. Raises ValueError if none does."""
    _check(moe, equal)
    plain = moe.replace(n_experts=0, d_expert=None, shared_expert=False)
    return _solve(
        equal,
        lambda width: (plain.replace(d_ff=width), moe),
        f"dense model with the MoE model's {COUNTS[equal][0]}",
        "Choose fewer or wider experts",
    )


def match_experts(dense: ModelConfig, mixture: ModelConfig, equal: str = "active") -> MatchedPair:
    """Choose the mixture's `d_expert` so that it costs what this dense model does.

    Args:
        mixture: says how many experts there are, how many a token visits, and in which blocks.

        Raises ValueError if no width fits.
    """
    _check(mixture, equal)
    plain = dense.replace(n_experts=0, d_expert=None, shared_expert=False)
    return _solve(
        equal,
        lambda width: (plain, mixture.replace(d_ff=plain.ff_width, d_expert=width)),
        f"MoE model of {mixture.n_experts} experts with the dense model's {COUNTS[equal][0]}",
        "Choose fewer experts, fewer of them per token, or a wider dense model",
    )


def _solve(
    equal: str, at_width: Callable[[int], tuple[ModelConfig, ModelConfig]], what: str, remedy: str
) -> MatchedPair:
    """The width from 1 to WIDEST at which both cost most nearly the same; ValueError naming `what` if none fits."""
    count = COUNTS[equal][1]

    def pair_at(width: int) -> MatchedPair:
        dense, moe = at_width(width)
        return MatchedPair(dense, moe, equal, (count(dense), count(moe)))

    low, high = 1, WIDEST
    rising = pair_at(high).counted[1] - pair_at(low).counted[1] > 0  # else the dense one is the one that grows

    def enough(width: int) -> bool:
        dense, moe = pair_at(width).counted
        return moe >= dense if rising else dense >= moe

    while low < high:  # the first width that is enough; the answer is this one or the one before
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    best = min((pair_at(width) for width in {max(low - 1, 1), low}), key=lambda pair: abs(pair.difference))
    if abs(best.difference) > TOLERANCE:
        dense, moe = best.counted
        raise ValueError(f"there is no {what} at this size: the nearest has {dense:,} against {moe:,}. {remedy}.")
    return best


def _check(mixture: ModelConfig, equal: str) -> None:
    if equal not in EQUAL:
        raise ValueError(f"{equal!r} cannot be made equal: choose one of {', '.join(EQUAL)}")
    if not mixture.n_experts:
        raise ValueError("one of the two must have experts: choose at least 2")
