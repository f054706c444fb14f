"""Experts: how tokens and load are spread over them, and whether the routers sort tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..inspection.favourites import RANDOM_ROUTERS
from .numbers import listed
from .result import Result

FAVOURITES = (
    "An expert's favourites go to it clearly more often than other tokens do. A percentage shows how often; no "
    "percentage means always."
)


def followed_words(token: str, layer: int, first: Sequence[int], used: int) -> str:
    """To how many different experts a token goes in a text: its first choices in one layer, wherever it occurs."""
    times, experts, mainly = len(first), set(first), " mainly" * (used > 1)
    goes = f"In layer {layer}, “{token}” goes{mainly} to"
    if len(experts) == 1:
        return f"{goes} expert {first[0]}{' each time' * (times > 1)}."
    return f"{goes} {len(experts)} different experts in {times} places."


def journey_words(token: str, position: int, layers: Sequence[int], experts: np.ndarray, weights: np.ndarray) -> str:
    """A token's first choices, layer by layer."""
    way = ". ".join(
        f"Layer {layer}: expert {row[0]} ({share[0]:.2f} of the weight)"
        for layer, row, share in zip(layers, experts, weights)
    )
    return f"The first choices of token {position} “{token}”. {way}. Framed: the experts it uses."


def training_load_words(
    layer: int, step: int, load: tuple[float, float, int, float, Sequence[int]], began: tuple[int, float] | None
) -> str:
    """How even a layer's load was at the end of training, and at first; of `inspection.balance.Evenness`."""
    entropy, most, busiest, share, dead = load
    then = f" ({2 ** began[1]:.1f} at step {began[0]:,})" if began else ""
    words = (
        f"Layer {layer}, step {step:,}: as even as if {2**entropy:.1f} of {2**most:.0f} experts shared all "
        f"tokens equally{then}. The busiest is expert {busiest} with {100 * share:.0f} %. "
    )
    return words + (f"Almost unused (✕): {experts_listed(dead)}." if len(dead) else "No expert is dead.")


def experts_listed(experts: Sequence[int]) -> str:
    """As "experts 1, 2 and 3"."""
    return f"expert{'s' * (len(experts) > 1)} {listed([str(expert) for expert in experts])}"


def sorting_words(layer: int, learned: float, random: float, used: int, *, clear: bool) -> tuple[str, str]:
    """Whether a layer sorts tokens over its experts more than random routers would: a headline, and how it was judged.

    Args:
        learned, random: by how much the token helps to guess its expert, as shares of all tokens; `random` is the best
            of the random routers.
        used: how many experts each token goes to.
    """
    headline = (
        f"Layer {layer} sorts tokens better than {RANDOM_ROUTERS} random routers."
        if clear
        else "Unclear: random routers sort these tokens just as well."
    )
    shares = f"Each token goes to {used} experts, so the shares add up to {100 * used} %. " if used > 1 else ""
    return headline, (
        f"Seeing the token helps to guess its expert for {1000 * learned:.0f} of 1,000 tokens. "
        f"With the best random router, it helps for {1000 * random:.0f}. {shares}".strip()
    )


def broken_result(plain: float, changed: float, what: str) -> Result:
    """What an edit of the experts does to the loss on a text, named by `what`."""
    before, after = f"{plain:.4f}", f"{changed:.4f}"
    if before == after:
        return Result("The loss stays the same.", f"It is {before} per token of {what}.")
    verb = "rises" if changed > plain else "falls"
    return Result(f"The loss {verb} by {abs(changed - plain):.4f}.", f"From {before} to {after} per token of {what}.")
