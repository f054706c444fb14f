"""Inspect: how to read the pictures of the steps; what edits, one optimizer step and the KV cache do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..inspection.sizes import Part
from .numbers import brief, bytes_text, listed, share
from .result import Result

_ROWS = "One row per token, one column per number of its vector. Click a row to choose its token."
READING = {
    "embed": _ROWS,
    "arrive": _ROWS,
    "norm": "The same rows after the norm, as attention reads them. Click a row to choose its token.",
    "project": "The input of attention for this token (h), then its Q, K and V.",
    "split": "One row per head; ▸ marks the chosen one.",
    "qk_norm": "This token's query and key in the chosen head, before and after.",
    "rotate": "Each arrow is a pair of the query's numbers: dotted before, solid after the rotation.",
    "share": "The chosen key, as each query head reads it. Click a row to choose its head.",
    "scores": "Rows are queries, columns are keys. Red is above zero, blue below. Click a cell to choose it.",
    "mask": "Masked cells get no weight. Click a cell to choose it.",
    "softmax": "Each row sums to 1. The framed cell is the chosen one; click another.",
    "mix": "Each row is a token's value times its weight. The last row is their sum.",
    "output": "One row per head: what it adds to the token, and its length. Click a row to choose its head.",
    "add": "One bar per token: how far attention moves it (‖Δ‖), how similar it stays (cosine). Click to choose one.",
    "mlp": "The neurons that respond most strongly to this token.",
    "route": "The router's probability for each expert.",
    "predict": "The most probable next tokens.",
}
"""How to read the picture of a step of `inspection.walk`; `route` is the MLP step of a mixture."""


# ---- edits -----------------------------------------------------------------------------------------------------------


def edit_cost_words(before: float, after: float, margin: float, judged: str) -> str:
    """What edits cost on a text. The losses have a digit more than the difference, so that these add up."""
    size = f"{abs(after - before):.4f}"
    if size == "0.0000":
        return f"On {judged}, the edits leave the loss unchanged to four decimals ({before:.5f})."
    words = f"On {judged}, the edits {'raise' if after > before else 'lower'} the loss from {before:.5f} to {after:.5f}"
    words += f", by {size} ± {margin:.4f} (95 % interval)." if math.isfinite(margin) else "."
    chance = math.isfinite(margin) and abs(after - before) <= margin
    return words + " This difference may be chance." * chance


# ---- one optimizer step ----------------------------------------------------------------------------------------------


ADAM = (
    "Adam divides by the gradient's own size. So in its first step, nearly every weight moves by about the learning "
    "rate."
)


def step_headline(before: float, after: float) -> str:
    """What one step does to the loss on its prompt."""
    if f"{before:.4f}" == f"{after:.4f}":
        return f"One step of AdamW leaves the loss at {after:.4f}."
    return f"One step of AdamW {'lowers' if after < before else 'raises'} the loss from {before:.4f} to {after:.4f}."


def largest_words(picture: str, title: str, largest: float) -> str:
    """The largest gradient of a matrix; or its largest move, and why nearly all are as large."""
    if picture == "gradient":
        return f"Largest gradient in {title}: {brief(largest)}."
    return f"Largest move in {title}: {brief(largest)}. {ADAM}" if largest else f"No weight moved in {title}."


def framed_words(
    name: str, place: tuple[int, int], value: float, shape: tuple[int, int], drawn: tuple[range, range]
) -> str:
    """The framed number of a matrix, and the part of the matrix that is drawn, if that is not all."""
    cut = [
        f"{what} {each.start} to {each.stop - 1} of {count}"
        for what, each, count in zip(("rows", "columns"), drawn, shape)
        if len(each) < count
    ]
    words = f"Framed: row {place[0]}, column {place[1]}, {name} {brief(value)}."
    return f"{words} Shown: {listed(cut)}." if cut else words


# ---- the KV cache ----------------------------------------------------------------------------------------------------


def cache_words(length: int, same: bool, largest: float, cached: int, plain: int, held: int, size: int) -> Result:
    """Whether both texts are the same, what was saved, and what the cache holds.

    Args:
        length: tokens written; largest: the difference of two scores.
        cached, plain: tokens read with the cache, and without.
        held, size: tokens in the cache, and bytes of each.
    """
    difference = f"Their scores differ by at most {largest:.1e}."
    if not same:
        return Result("With the cache, the model writes different tokens. Please report this bug.", difference)
    read = f"With the cache, the model reads {cached:,} tokens instead of {plain:,}."
    memory = f"The cache holds {held:,} tokens: {held * size:,} bytes as float32, {size:,} for each token."
    return Result(read, f"Both times, the model writes the same {length} tokens. {memory}", difference)


# ---- sizes and receipts ----------------------------------------------------------------------------------------------


def cost_words(parts: Sequence[Part], used: int, experts: int) -> Result:
    """The part with the most parameters, and its share of the arithmetic; a token uses so many of the experts."""
    most = max(parts, key=lambda part: part.parameters)
    stored, computed = (
        value / sum(getattr(part, name) for part in parts)
        for name, value in (("parameters", most.parameters), ("operations", most.operations))
    )
    many = most.name.endswith("s")
    does = "They do" if many else "It does"
    number = f"{does} {share(computed)} of the arithmetic."
    if not most.operations:
        number = f"{does} no arithmetic: each token only looks up its row."
        if any(part.operations and not part.parameters for part in parts):
            number = "Each token looks up its row. The tied output layer scores every token with the same table."
    elif most.name.endswith("experts"):
        number = f"{does} {share(computed)} of the arithmetic, as a token uses only {used} of {experts}."
    named = f"The {most.name} hold" if many else f"{most.name.capitalize()} holds"
    return Result(f"{named} {share(stored)} of the parameters.", number)


def sizes_words(parameters: int, operations: int, each: int) -> str:
    """How large the whole model is, with so many bytes for each parameter; what it computes for the last token."""
    return (
        f"The {parameters:,} parameters take {bytes_text(each * parameters)} in {8 * each} bits. "
        f"The last of these tokens takes {operations:,} operations, counting additions and multiplications."
    )


def receipt_proof(difference: float, worst: str, bits: int) -> str:
    """How closely a receipt agrees with the model."""
    return (
        f"NumPy computed this with 64-bit numbers. The model itself, with {bits}-bit numbers, differs by at most "
        f"{difference:.1e} (in {worst})."
    )
