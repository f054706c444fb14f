"""All heads at once as small pictures, the one that this prediction owes most first; a click chooses one."""

from __future__ import annotations

import weakref
from typing import Any

import gradio as gr
import numpy as np

from ....figures.attention import head_grid
from ....figures.heads import UNSEEN
from ....inspection import Look
from ....inspection.heads import row_summary, summary
from ....words.heads import lies_on, row_lies_on
from ... import theme
from ...chart import Chart, show
from ...widgets.clicks import trace_of
from .drawn import MOST_HEADS, window, window_words
from .frame import Frame, Place, watched
from .place import moved, ranking
from .tested import known

TAGS = {
    "induction": "induction", "duplicate": "copies", "followed": "followed", "previous": "previous", "first": "first",
    "itself": "itself", "even": "even", "content": "content", "unclear": "",
}  # fmt: skip
"""A tested role in one word, for a small title."""


def build(frame: Frame) -> None:
    """A heading and the grid."""
    gr.HTML(
        theme.heading(
            "All heads",
            "Rows ask, columns answer. First the head without which the prediction after the last token changes "
            "most. Click one.",
        ),
        padding=False,
    )
    grid = Chart(height=420, save_name="heads", clickable=True, elem_id="inspect-heads-grid")

    def draw(look: Look, place: Place) -> dict[Any, Any]:
        known = weakref.ref(look)

        def exact() -> dict[str, Any] | None:
            return (still := known()) and thumbnails(still, place, exact=True)[0]

        return {grid: show(*thumbnails(look, place), exact=exact)}

    def clicked(look: Look, place: Place, event: gr.EventData) -> Place:
        drawn = ranking(look)[:MOST_HEADS]
        layer, head = drawn[trace_of(event, len(drawn))]
        return watched(look, place.at(layer=layer, head=head))

    frame.follow(draw, [grid], per="head")
    frame.moves(grid.select, clicked)


def thumbnails(look: Look, place: Place, *, exact: bool = False) -> tuple[dict[str, Any], str]:
    """The grid and its sentence."""
    heads = ranking(look)
    drawn = heads[:MOST_HEADS]
    part = window(look.length, place.query)
    by_layer = {layer: look.pattern(layer)[:, part, part].float().cpu().numpy() for layer in {la for la, _ in drawn}}
    patterns = np.stack([by_layer[layer][head] for layer, head in drawn])
    found = known(look)
    tags = {at: TAGS[found.tests.role(*at)] if found else "" for at in drawn}
    titles = [f"L{layer}H{head} {tags[layer, head]}".rstrip() for layer, head in drawn]
    chosen = drawn.index((place.layer, place.head)) if (place.layer, place.head) in drawn else None
    figure = head_grid(
        patterns, titles, look.tokens[part], columns=4, causal=look.config.causal, exact=exact, size=112, chosen=chosen
    )
    more = f" {len(drawn)} of {len(heads)} heads are drawn, the first of this order." if len(drawn) < len(heads) else ""
    return figure, f"{words(look, place)}{more}{window_words(look, part)}"


def words(look: Look, place: Place) -> str:
    """What the first head of the order does for the last token and what the prediction owes it; and the chosen one."""
    moves = moved(look)

    def does(layer: int, head: int) -> str:
        if moves is None:
            return f"{lies_on(summary(look, layer, head))}."
        row = row_lies_on(row_summary(look, layer, head, look.length - 1), look.tokens)
        return f"at the last token {row}. Without it the prediction moves by {moves[layer, head]:.4f} nats."

    layer, head = ranking(look)[0]
    if moves is None:
        first = f"Most telling on this prompt: layer {layer}, head {head}, which {does(layer, head)}"
    elif moves.max() < UNSEEN:
        return f"No head matters here measurably: without any one the prediction moves by less than {UNSEEN:g} nats."
    else:
        first = f"Most depends here on layer {layer}, head {head}, which {does(layer, head)}"
    if (layer, head) == (place.layer, place.head):
        return first
    return f"{first} The chosen head (layer {place.layer}, head {place.head}) {does(place.layer, place.head)}"
