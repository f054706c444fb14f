"""Experts: how tokens and load are spread over them, and what the routing encodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .numbers import listed, signed

if TYPE_CHECKING:
    from ..inspection.nulls import Judgement

ONLY = 0.75
"""A first choice that counts less than this leaves something to the others."""
MEASURES = {
    "total": "the expert alone",
    "beyond": "beyond the token itself",
    "remembered": "from earlier sentences",
}
"""What is measured of a layer, in words."""
NULLS = {
    "shuffled": "the speakers of other sentences",
    "position": "random experts for every token",
    "before": "the routers before training",
    "random": "random routers on the same stream",
}
"""Baselines without learned routing."""


def routing_words(experts: np.ndarray, weights: np.ndarray, tokens: Sequence[str], layer: int, E: int) -> str:
    """How many experts this text uses in the layer (T, K), the busiest of them, and the least certain token."""
    T, K = experts.shape
    visits = np.bincount(experts.ravel(), minlength=E)
    busiest = int(visits.argmax())
    who = "this one token uses" if T == 1 else f"these {T:,} tokens use"
    words = (
        f"In layer {layer + 1} {who} {np.count_nonzero(visits)} of {E} experts. Expert {busiest} gets the most, "
        f"{100 * visits[busiest] / visits.sum():.0f} % (an even share is {100 / E:.3g} %)."
    )
    if K > 1:
        t = int(weights[:, 0].argmin())
        only = "only " * bool(weights[t, 0] < ONLY)
        words += f" Least certain: {t} “{tokens[t]}”, whose first choice gets {only}{weights[t, 0]:.2f} of the weight."
    return words


def journey_words(token: str, position: int, layers: Sequence[int], experts: np.ndarray, weights: np.ndarray) -> str:
    """A token's first choices, layer by layer."""
    way = ". ".join(
        f"Layer {layer + 1}: expert {row[0]} ({share[0]:.2f} of the weight)"
        for layer, row, share in zip(layers, experts, weights)
    )
    return f"The first choices of token {position} “{token}”. {way}. Framed: the experts it uses."


def load_words(
    tokens: int, load: tuple[float, Sequence[int]], weight: tuple[float, Sequence[int]], never_first: Sequence[int]
) -> str:
    """How even tokens and weight are over a text's experts, and which of them get hardly any.

    Args:
        load, weight: how many evenly used experts would be as even, and who gets next to nothing.
        never_first: experts that are no token's first choice.
    """
    (visits, dead), (by_weight, unheard) = load, weight
    words = f"The load is as even as with {visits:.1f} equally used experts"
    words += f"; by weight, with {by_weight:.1f}." if f"{visits:.1f}" != f"{by_weight:.1f}" else "."
    for what, experts in (
        (f"Unused by these {tokens:,} tokens" if tokens != 1 else "Unused by this token", dead),
        ("Used, but with hardly any weight", [e for e in unheard if e not in dead]),
        ("Never a first choice", [e for e in never_first if e not in dead]),
    ):
        words += f" {what}: {experts_listed(experts)}." if len(experts) else ""
    return words


def training_load_words(
    layer: int, step: int, load: tuple[float, float, int, float, Sequence[int]], began: tuple[int, float] | None
) -> str:
    """How even a layer's load was at the end of training, and at first; of `inspection.balance.Evenness`."""
    entropy, most, busiest, share, dead = load
    words = (
        f"Layer {layer + 1} in training, step {step:,}: load as even as with {2**entropy:.1f} equally used experts "
        f"(entropy {entropy:.2f} of {most:.2f} bits). The busiest is expert {busiest} with {100 * share:.0f} %. "
    )
    words += f"Almost unused: {experts_listed(dead)}." if len(dead) else "No expert is dead."
    return words + (f" At step {began[0]:,} its entropy was {began[1]:.2f} bits." if began else "")


def experts_listed(experts: Sequence[int]) -> str:
    """As "experts 1, 2 and 3"."""
    return f"expert{'s' * (len(experts) > 1)} {listed([str(expert) for expert in experts])}"


# ---- what the routing encodes ----------------------------------------------------------------------------------------


def information_words(layers: Sequence[int], found: Sequence[Mapping[str, Judgement]]) -> str:
    """Whether the routers learned who speaks; by layer and measure."""
    clear, below = [], []
    for measure in MEASURES:
        judged = [layer[measure] for layer in found]
        best = _best(judged)
        clear += [layers[best]] if judged[best].is_clear else []
        below += [layer for layer, each in zip(layers, judged) if each.above < -each.margin]
    if clear:
        words = f"The routing encodes the speaker better than untrained routers do, most in {_layers(clear)}."
    elif below:
        words = "The routing does not encode the speaker better than untrained routers do."
    else:
        words = "Too close to call: untrained routers encode the speaker about as well."
    knows = max(layer["beyond"].nulls["random"].bits for layer in found)
    luck = max(layer["beyond"].nulls["shuffled"].bits for layer in found)
    if not clear and knows > 4 * luck + 0.02:
        words += f" Attention has gathered it already: random routers encode {knows:.2f} bits beyond the token."
    return words + (f" In {_layers(below)}, it encodes clearly less." if below else "")


def _layers(found: Sequence[int]) -> str:
    """As "layers 1 and 4"."""
    each = [str(layer + 1) for layer in sorted({*found})]
    return f"layer{'s' * (len(each) > 1)} {listed(each)}"


def information_details(layers: Sequence[int], found: Sequence[Mapping[str, Judgement]], token_bits: float) -> str:
    """By how much each measure beats the strictest of its baselines, in its best layer."""
    parts = []
    for measure, name in MEASURES.items():
        judged = [layer[measure] for layer in found]
        best = _best(judged)
        one = judged[best]
        beside = f"Best baseline: {one.nulls[one.hardest].bits:.3f}, {NULLS[one.hardest]}"
        parts.append(f"Layer {layers[best] + 1}, {name}: {one.bits:.3f} bits. {beside}. {_lead(one)}.")
    if any("±" in part for part in parts):
        parts.append("The ± is a 95 % interval for all layers and measures, from the spread of untrained routers.")
    return " ".join([*parts, f"The token alone encodes {token_bits:.2f} bits."])


def _best(judged: Sequence[Judgement]) -> int:
    """The layer with the largest lead over its strictest baseline."""
    return max(range(len(judged)), key=lambda i: (judged[i].is_clear, judged[i].above))


def _lead(one: Judgement) -> str:
    """The lead over the strictest baseline, or that there is none."""
    if not np.isfinite(one.margin):
        return "The text is too short to measure the rest"
    size = f"{signed(one.above, 3, plus=True)} ± {one.margin:.3f}"
    if one.is_clear:
        return f"Clearly more: {size}"
    return f"Clearly less: {size}" if one.above < -one.margin else f"No clear difference: {size}"


def sources_words(table: np.ndarray, lift: np.ndarray, sources: Sequence[str]) -> str:
    """The expert whose tokens are most often one source's; counts and lifts (E, S)."""
    enough = np.where(table.sum(axis=1, keepdims=True) >= 0.02 * table.sum(), lift, np.nan)
    if not np.isfinite(enough).any():
        return "No expert has enough tokens to compare."
    e, s = (int(i) for i in np.unravel_index(int(np.nanargmax(enough)), enough.shape))
    share, base = table[e, s] / table[e].sum(), table[:, s].sum() / table.sum()
    rare = " among those that are often a first choice" * bool(np.nanmax(lift) > enough[e, s])
    empty = [int(each) for each in np.flatnonzero(table.sum(axis=1) == 0)]
    return (
        f"Expert {e} stands out most{rare}: {100 * share:.0f} % of its tokens are the {sources[s]}'s. "
        f"Of all {table.sum():,} tokens, {100 * base:.0f} % are (×{enough[e, s]:.2f})."
    ) + (f" Never a first choice here: {experts_listed(empty)}." if empty else "")
