"""What two models expect next, candidate by candidate, in the colours of dense and mixture."""

from __future__ import annotations

from collections.abc import Sequence

from ..words.numbers import percent
from . import palette
from .candidates import next_tokens
from .shapes import Figure


def both_expect(labels: Sequence[str], dense: Sequence[float], moe: Sequence[float]) -> Figure:
    """Two bars per candidate: the dense model's probability above, the mixture's below it, hatched.

    Args:
        labels: visible token texts, one per candidate.
        dense, moe: their probabilities, 0 … 1.
    """
    figure = next_tokens(labels, moe, dense, names=("dense", "MoE"))
    above, below = figure["data"]
    above["marker"] = {"color": palette.DENSE, "line": {"width": 0}}
    below["marker"] = {
        "color": palette.MOE,
        "line": {"width": 0},
        # plotly paints the bar's own colour under the stripes only if told to
        "pattern": {"shape": "/", "size": 5, "solidity": 0.25, "fgcolor": palette.PAPER, "fillmode": "overlay"},
    }
    return figure


def describe_both(labels: Sequence[str], dense: Sequence[float], moe: Sequence[float], divergence: float) -> str:
    """Whether the two agree, in a sentence."""
    best = [max(range(len(labels)), key=values.__getitem__) for values in (dense, moe)]
    apart = f"Their distributions are {divergence:.4f} nats apart (Jensen–Shannon; at most 0.69)."
    if best[0] == best[1]:
        shares = f"dense at {percent(dense[best[0]])}, MoE at {percent(moe[best[1]])}"
        where = f"Both expect “{labels[best[0]]}” most, {shares}."
    else:
        where = (
            f"Dense expects “{labels[best[0]]}” most ({percent(dense[best[0]])}), "
            f"MoE “{labels[best[1]]}” ({percent(moe[best[1]])})."
        )
    return f"{where} {apart}"
