"""Textbook slips: mistakes that teaching texts on the transformer make, and what is true."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..studies.slips import slip_numbers


class Slip(NamedTuple):
    """One mistake, in our own words."""

    says: str
    truth: str
    """With a place in braces for each number."""


def slip_sentences(name: str) -> tuple[str, str] | None:
    """(what the text says, what is true) of a slip; None if the model that its numbers need is not here."""
    try:
        truth = SLIPS[name].truth.format(**slip_numbers(name))
    except (OSError, ValueError):  # the shipped models are not everywhere where the program is
        return None
    return f"One textbook {SLIPS[name].says}.", re.sub(r"(?<=[ (])-(?=\d)", "−", truth)  # a proper minus sign


SLIPS: dict[str, Slip] = {
    "counts": Slip(
        "says that a list of heads and one reshaped projection have the same number of parameters",
        "Its reshaped version adds biases to Q, K and V: 3 · {d} = {per_layer:,} more per layer. That makes {more:,} "
        "in {layers} layers. With equal biases, counts and outputs are equal.",
    ),
    "mask": Slip(
        "unsqueezes a (T, T) mask twice, so that it fits batch and heads",
        "With both new axes in the middle, a ({T}, {T}) mask becomes ({T}, 1, 1, {T}). A batch of 1 silently turns "
        "into one of {batch}; a batch of 4 fails. A plain ({T}, {T}) mask fits every batch and head.",
    ),
    "placement": Slip(
        "calls LN(x + f(x)) “Pre-LN”",
        "That is post-norm; pre-norm is x + f(LN(x)). Suppose {layers} blocks add two random vectors each. A post-norm "
        "vector then has length {post:.1f} (√d = {root:.1f}, whatever was added), a pre-norm one {pre:.1f}.",
    ),
    "size": Slip(
        "says that its model has about 117 M parameters, its blocks about 70 M",
        "It has {all:.1f} M, its blocks {blocks:.1f} M. Its output layer is not tied to the embedding. Each of 12 "
        "blocks has 12 · d² weights and some biases.",
    ),
    "compute": Slip(
        "says that attention costs 201 M operations and the MLP 2.4 M",
        "The first counts the scores of a whole sequence (512² · 768 = {sequence:.0f} M products). The second counts "
        "one token's first matrix ({token:.1f} M). Per token, scores and weighted average take {attention:.1f} M "
        "operations. The MLP takes {feedforward:.1f} M, {times:.0f} times as many.",
    ),
    "bytes": Slip(
        "says that Q, K and V of one block take 37.7 MB, a block about 640 MB",
        "They are {numbers:.1f} M numbers, which take {qkv:.0f} MB in 32 bits. With scores and hidden layer, a block "
        "keeps {block:.0f} MB. The textbook's {mixed:.0f} comes from adding numbers to bytes.",
    ),
    "padding": Slip(
        "pads short sentences with word 0 and counts those targets in the loss",
        "Then the model learns to say word 0 after every short sentence. In our twenty sentences, padding would be "
        "{padding} of {cells} targets ({share:.0%}). Leave padding out of the loss.",
    ),
    "alike": Slip(
        "says that words with similar uses end up with similar vectors",
        "In its own code, the cosines stay where they began. In ours, on twenty sentences, mat and rug go from "
        "{mat0:.2f} to {mat:.2f}. Cat and dog go from {cat0:.2f} to {cat:.2f}.",
    ),
    "dropout": Slip(
        "judges its model on held-out text with dropout still on",
        "The same weights then look worse than they are. Our prose model has a loss of {on:.2f} with its dropout "
        "of {p:g}, but {off:.2f} without. Held-out text must not repeat the training text either; "
        "in that textbook it does.",
    ),
}
"""By name."""
