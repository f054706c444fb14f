"""Textbook slips in words: what teaching texts on the transformer say by mistake, and what is true."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..inspection.slips import slip_numbers


@dataclass(frozen=True)
class Slip:
    """One mistake, in our own words."""

    source: str
    says: str
    truth: str
    """A sentence with a place in braces for each number."""


def slip_sentences(name: str) -> tuple[str, str] | None:
    """(what the text says, what is true) of a slip; None where the model that its numbers need is not here."""
    slip = SLIPS[name]
    try:
        truth = slip.truth.format(**slip_values(name))
    except (OSError, ValueError):  # the shipped models are not everywhere where the program is
        return None
    return f"{slip.source} {slip.says}.", re.sub(r"(?<=[ (])-(?=\d)", "−", truth)  # a proper minus sign


def slip_values(name: str) -> dict[str, float | str]:
    """What stands in the places of a slip's sentence. Raises OSError or ValueError as `slip_numbers` does."""
    values: dict[str, float | str] = dict(slip_numbers(name))
    if name == "mask":
        values["four"] = "fails" if values["four_fails"] else "is taken, too"
    return values


SLIPS: dict[str, Slip] = {
    "counts": Slip(
        "S1",
        "says that a list of heads and one reshaped projection have the same number of parameters",
        "Its reshaped version adds biases to Q, K and V: 3 · {d} = {per_layer:,} more per layer, {more:,} in {layers} "
        "layers. With equal biases counts and outputs are equal.",
    ),
    "mask": Slip(
        "S2",
        "unsqueezes a (T, T) mask twice, so that it fits batch and heads",
        "Unsqueezed behind its rows a ({T}, {T}) mask becomes ({T}, 1, 1, {T}): a batch of 1 silently turns into one "
        "of "
        "{batch}, a batch of 4 {four}. As it is, ({T}, {T}) fits every batch and head.",
    ),
    "placement": Slip(
        "S3",
        "calls LN(x + f(x)) “Pre-LN”",
        "That is post-norm: pre-norm is x + f(LN(x)). After {layers} blocks of sublayers that add random vectors a "
        "post-norm vector has length {post:.1f} (√d = {root:.1f}, whatever was added), a pre-norm one {pre:.1f}.",
    ),
    "size": Slip(
        "S3",
        "says that its model has about 117 M parameters, its blocks about 70 M",
        "It has {all:.1f} M, its blocks {blocks:.1f} M: its output layer is not tied to the embedding, and each of "
        "12 blocks "
        "has 12 · d² weights and some biases.",
    ),
    "compute": Slip(
        "S3",
        "says that attention costs 201 M operations and the feed-forward layer 2.4 M",
        "The first is a whole sequence's scores (512² · 768 = {sequence:.0f} M products), the second one token's first "
        "matrix ({token:.1f} M). Per token, scores and blend take {attention:.1f} M operations, the feed-forward layer "
        "{feedforward:.1f} M: {times:.0f} times as many.",
    ),
    "bytes": Slip(
        "S3",
        "says that Q, K and V of one block take 37.7 MB, a block about 640 MB",
        "{numbers:.1f} M is how many numbers they are; in 32 bits that is {qkv:.0f} MB. With scores and hidden layer "
        "a block "
        "keeps {block:.0f} MB, not the {mixed:.0f} that come of adding numbers to bytes.",
    ),
    "padding": Slip(
        "S5",
        "pads short sentences with word 0 and counts those targets in the loss",
        "Then a model is trained to say word 0 after every short sentence: in our twenty sentences padding would be "
        "{padding} of {cells} targets ({share:.0%}). Padding belongs left out of the loss.",
    ),
    "words": Slip(
        "S5",
        "says that its sentences have 24 different words",
        "They have {words}: with 24 its dense model would have {fewer:,} parameters, it has {n:,}.",
    ),
    "loops": Slip(
        "S5",
        "says that its training is 750 loops",
        "{sentences} sentences in batches of {batch} are {per_epoch} batches an epoch, and 150 epochs {loops} loops.",
    ),
    "alike": Slip(
        "S5",
        "says that words used alike end up with vectors that are alike",
        "In its own code the cosines stay where they began. Ours, on twenty sentences: mat and rug go from "
        "{mat0:.2f} to {mat:.2f}, cat and dog from {cat0:.2f} to {cat:.2f}.",
    ),
    "dropout": Slip(
        "S2",
        "judges its model on held-out text with dropout still on",
        "The same weights then look worse than they are: our prose model loses {on:.2f} nats with its dropout of "
        "{p:g}, "
        "{off:.2f} without. A held-out text must also not repeat the training text.",
    ),
}
"""By name."""
