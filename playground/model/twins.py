"""Twins: the width at which a dense model and a mixture of experts cost the same, found and written out as a sum.

There is nothing to learn from a larger model being better. So one of the two has a free width (the dense model's
feed-forward layer, or the experts'), and it is set so that both have equally many parameters that one token uses,
equally many in all, or equally many floating-point operations per token. All three are counted by `ModelConfig` itself
and grow with the width, so the width is found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .config import ModelConfig

EQUAL = ("active", "total", "flops", "seconds")
"""What may be made equal: parameters that one token uses, all parameters, operations, or time spent training."""
WIDEST = 1 << 20
TOLERANCE = 0.02
"""Twins whose costs are further apart than this share are none."""

_COUNTS: dict[str, tuple[str, Callable[[ModelConfig], int]]] = {
    "active": ("active parameters", lambda config: config.n_active_parameters),
    "total": ("parameters in all", lambda config: config.n_parameters),
    "flops": ("operations per token", lambda config: config.flops_per_token()),
}
# equal seconds are reached by the number of steps, so the models themselves are made alike for one token
_COUNTS["seconds"] = _COUNTS["active"]


@dataclass(frozen=True)
class Twins:
    """Two models to compare, and why they are a fair pair."""

    dense: ModelConfig
    moe: ModelConfig
    equal: str
    """One of EQUAL."""
    counted: tuple[int, int]
    """What was made equal: the dense model's number, the mixture's."""

    @property
    def difference(self) -> float:
        """How far the mixture's number is from the dense one's, as a share of it."""
        return self.counted[1] / self.counted[0] - 1

    def in_words(self) -> str:
        """The sum: which width was chosen, and what the two then cost."""
        what = _COUNTS[self.equal][0]
        dense, moe = self.counted
        apart = "exactly equal" if dense == moe else f"{100 * abs(self.difference):.2g} % apart"
        return (
            f"Dense: one feed-forward layer of {self.dense.ff_width:,}. "
            f"MoE: {self.moe.n_experts} experts of {self.moe.expert_width:,}, {self.moe.experts_per_token} per token"
            f"{', and a shared one' if self.moe.shared_expert else ''}. "
            f"{what[0].upper()}{what[1:]}: {dense:,} and {moe:,}, {apart}."
        )

    def sum_per_layer(self) -> list[tuple[str, str, int, int]]:
        """Matrix numbers of one block's feed-forward part: (what, how it is counted, in all, used by one token)."""
        d, matrices = self.moe.d_model, 3 if self.moe.activation == "swiglu" else 2
        f, E, K = self.moe.expert_width, self.moe.n_experts, self.moe.experts_per_token
        shared = int(self.moe.shared_expert)
        dense = matrices * d * self.dense.ff_width
        one = matrices * d * f
        everyone = f" + {shared} shared" if shared else ""
        return [
            ("Dense", f"{matrices} × {d} × {self.dense.ff_width:,}", dense, dense),
            ("Experts", f"{E}{everyone} × {matrices} × {d} × {f:,}, {K}{everyone} used",
             (E + shared) * one, (K + shared) * one),
            ("Router", f"{d} × {E}", d * E, d * E),
        ]  # fmt: skip


def dense_twin(moe: ModelConfig, equal: str = "active") -> Twins:
    """The dense model (its `d_ff`) that costs what this mixture does. Raises ValueError where there is none."""
    _check(moe, equal)
    plain = moe.replace(n_experts=0, d_expert=None, shared_expert=False)
    return _solve(
        equal,
        lambda width: (plain.replace(d_ff=width), moe),
        f"a dense model with the mixture's {_COUNTS[equal][0]}",
        "Choose fewer or wider experts",
    )


def expert_twin(dense: ModelConfig, mixture: ModelConfig, equal: str = "active") -> Twins:
    """The mixture (its `d_expert`) that costs what this dense model does.

    Args:
        mixture: says how many experts there are, how many a token visits, and in which blocks.

    Raises ValueError where there is none.
    """
    _check(mixture, equal)
    plain = dense.replace(n_experts=0, d_expert=None, shared_expert=False)
    return _solve(
        equal,
        lambda width: (plain, mixture.replace(d_ff=plain.ff_width, d_expert=width)),
        f"a mixture of {mixture.n_experts} experts with the dense model's {_COUNTS[equal][0]}",
        "Choose fewer experts, fewer of them per token, or a wider dense model",
    )


def _solve(equal: str, at_width: Callable[[int], tuple[ModelConfig, ModelConfig]], what: str, remedy: str) -> Twins:
    """The width from 1 to WIDEST at which both cost most nearly the same; ValueError with `what` where none fits."""
    count = _COUNTS[equal][1]

    def twins(width: int) -> Twins:
        dense, moe = at_width(width)
        return Twins(dense, moe, equal, (count(dense), count(moe)))

    low, high = 1, WIDEST
    rising = twins(high).counted[1] - twins(low).counted[1] > 0  # else the dense one is the one that grows

    def enough(width: int) -> bool:
        dense, moe = twins(width).counted
        return moe >= dense if rising else dense >= moe

    while low < high:  # the first width that is enough; the answer is this one or the one before
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    best = min((twins(width) for width in {max(low - 1, 1), low}), key=lambda pair: abs(pair.difference))
    if abs(best.difference) > TOLERANCE:
        dense, moe = best.counted
        raise ValueError(
            f"there is no {what.removeprefix('a ')} at this size: the nearest has {dense:,} against {moe:,}. {remedy}."
        )
    return best


def _check(mixture: ModelConfig, equal: str) -> None:
    if equal not in EQUAL:
        raise ValueError(f"{equal!r} cannot be made equal: choose one of {', '.join(EQUAL)}")
    if not mixture.n_experts:
        raise ValueError("one of the two must have experts: choose at least 2")
