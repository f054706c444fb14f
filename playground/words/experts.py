"""Experts: how tokens and load are spread over them, and whether the routers sort tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..inspection.balance import Evenness
from ..inspection.favourites import RANDOM_ROUTERS
from .numbers import listed


def routing_words(experts: np.ndarray, layer: int, E: int) -> str:
    """How many experts (T, K) this text uses in the layer, and the busiest of them."""
    T = len(experts)
    visits = np.bincount(experts.ravel(), minlength=E)
    busiest = int(visits.argmax())
    who = "this one token uses" if T == 1 else f"these {T:,} tokens use"
    return (
        f"In layer {layer} {who} {np.count_nonzero(visits)} of {E} experts. Expert {busiest} gets the most, "
        f"{100 * visits[busiest] / visits.sum():.0f} % (an even share is {100 / E:.3g} %)."
    )


def journey_words(token: str, position: int, layers: Sequence[int], experts: np.ndarray, weights: np.ndarray) -> str:
    """A token's first choices, layer by layer."""
    way = ". ".join(
        f"Layer {layer}: expert {row[0]} ({share[0]:.2f} of the weight)"
        for layer, row, share in zip(layers, experts, weights)
    )
    return f"The first choices of token {position} “{token}”. {way}. Framed: the experts it uses."


def training_load_words(layer: int, step: int, load: Evenness) -> str:
    """How even a layer's load was at the end of training."""
    words = (
        f"Layer {layer} at step {step:,} of training: tokens spread as evenly as over {2**load.entropy:.1f} busy "
        f"experts. The busiest is expert {load.busiest} with {100 * load.busiest_share:.0f} %. "
    )
    return words + (f"Almost unused (✕): {experts_listed(load.dead)}." if len(load.dead) else "No expert is dead.")


def experts_listed(experts: Sequence[int]) -> str:
    """As "experts 1, 2 and 3"."""
    return f"expert{'s' * (len(experts) > 1)} {listed([str(expert) for expert in experts])}"


def sorting_words(layer: int, learned: float, random: float, *, clear: bool) -> tuple[str, str]:
    """Whether a layer sorts tokens over its experts more than random routers would: a headline, and how it was judged.

    Args:
        learned, random: by how much the token helps to guess its expert, as shares of all tokens; `random` is the best
            of the random routers.
    """
    headline = (
        f"Layer {layer} has learned to sort tokens by expert."
        if clear
        else "Unclear: random routers sort these tokens just as much."
    )
    return headline, (
        f"Knowing the token raises right guesses of its expert by {100 * learned:.1f} percentage points. "
        f"With the best of {RANDOM_ROUTERS} random routers, it is {100 * random:.1f}."
    )
