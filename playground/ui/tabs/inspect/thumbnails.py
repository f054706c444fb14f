"""All heads at once as small pictures, the most telling first; a click chooses one."""

from __future__ import annotations

from typing import Any

import gradio as gr
import numpy as np

from ....figures.attention import head_grid
from ....inspection import Look
from ....inspection.heads import HeadScores, head_scores, role
from ... import theme
from ...chart import Chart, show
from ...widgets.clicks import trace_of
from .drawn import MOST_HEADS, window, window_words
from .frame import Frame, Place, watched

TAGS = {
    "looks at the token before": "previous",
    "looks at what followed last time (induction)": "induction",
    "looks at earlier copies of the token": "copies",
    "rests on the first token (sink)": "first",
    "looks at the token itself": "itself",
    "spreads its weight evenly": "even",
}
"""A role in one word, for a small title."""


def build(frame: Frame) -> None:
    """A heading and the grid."""
    gr.HTML(
        theme.heading("All heads", "Rows ask, columns answer; the most telling head first. Click one."), padding=False
    )
    grid = Chart(height=420, save_name="heads", clickable=True, elem_id="inspect-heads-grid")

    def draw(look: Look, place: Place) -> dict[Any, Any]:
        return {grid: show(*thumbnails(look, place))}

    def clicked(look: Look, place: Place, event: gr.EventData) -> Place:
        ranking = head_scores(look).ranking()[:MOST_HEADS]
        layer, head = ranking[trace_of(event, len(ranking))]
        return watched(look, place.at(layer=layer, head=head))

    frame.follow(draw, [grid], per="head")
    frame.moves(grid.select, clicked)


def thumbnails(look: Look, place: Place) -> tuple[dict[str, Any], str]:
    """The grid and its sentence."""
    scores = head_scores(look)
    ranking = scores.ranking()
    drawn = ranking[:MOST_HEADS]
    part = window(look.length, place.query)
    by_layer = {layer: look.pattern(layer)[:, part, part].float().cpu().numpy() for layer in {la for la, _ in drawn}}
    patterns = np.stack([by_layer[layer][head] for layer, head in drawn])
    titles = [f"L{la}H{h} {TAGS.get(role(scores.of(la, h)), '')}".rstrip() for la, h in drawn]
    chosen = drawn.index((place.layer, place.head)) if (place.layer, place.head) in drawn else None
    figure = head_grid(
        patterns, titles, look.tokens[part], columns=4, causal=look.config.causal, size=112, chosen=chosen
    )
    more = f" {len(drawn)} of {len(ranking)} heads are drawn, the most telling." if len(drawn) < len(ranking) else ""
    return figure, f"{words(scores, place)}{more}{window_words(look, part)}"


def words(scores: HeadScores, place: Place) -> str:
    """The most telling head's role, and the chosen one's."""
    layer, head = scores.ranking()[0]
    best = f"Most telling on this prompt: layer {layer}, head {head}, which {role(scores.of(layer, head))}."
    if (layer, head) == (place.layer, place.head):
        return best
    return (
        f"{best} The chosen head (layer {place.layer}, head {place.head}) {role(scores.of(place.layer, place.head))}."
    )
