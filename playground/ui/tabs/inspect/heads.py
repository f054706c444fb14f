"""Heads, enlarged: the chosen head's whole pattern with its row sums, and beside it another head, prompt or model."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....figures.attention import pattern_map
from ....inspection import Look
from ....inspection.heads import row_summary, summary
from ....words.heads import ROLE_NAMES, describe_pattern, lies_on, row_lies_on
from ... import theme
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientDropdown, SteadyRadio
from ...page import Page, sentence
from ...widgets.clicks import cell_of
from . import receipt
from .drawn import cell, window, window_words
from .frame import Frame, Place, whole
from .tested import known

TITLE = "Heads side by side"
SAME, OTHER = "same", "other"


def build(frame: Frame) -> None:
    """What to compare with; two large patterns side by side; the receipt of the chosen cell below."""
    with gr.Column(elem_classes="card"), gr.Row(equal_height=False):
        whose = SteadyRadio(
            [("Another head", SAME), ("Another model", OTHER)],
            value=SAME,
            label="Compare with",
            elem_classes="pills",
            min_width=240,
            elem_id="inspect-whose",
        )
        model = frame.page.model_picker("Model", visible=False)
        with gr.Row(elem_id="inspect-other"):
            layer = LenientDropdown([("0", 0)], value=0, label="Layer", filterable=False, min_width=80)
            head = LenientDropdown([("1", 1)], value=1, label="Head", filterable=False, min_width=80)
    with gr.Row(equal_height=False):
        with gr.Column(min_width=320, elem_classes="card"):
            name = gr.HTML(padding=False, elem_id="inspect-head-name")
            chart = Chart(height=420, save_name="head", clickable=True, elem_id="inspect-head-chart")
        with gr.Column(min_width=320, elem_classes="card"):
            other_name = gr.HTML(padding=False, elem_id="inspect-other-name")
            other = Chart(height=420, save_name="other-head", elem_id="inspect-other-chart")
    receipt.build(frame)

    def draw(look: Look, place: Place, visitor, first, prompt, kind, own, other_layer, other_head) -> dict[Any, Any]:
        own = another(frame.page, visitor, first, own) if kind == OTHER else own
        shown = {
            name: headline(look, place),
            chart: show(*enlarged(look, place)),
            model: gr.update(value=own, visible=kind == OTHER),
        }
        try:
            compared = look if kind == SAME else frame.look(visitor, own, prompt)
        except ValueError as problem:
            return {**shown, other_name: theme.notice(sentence(str(problem)), "warning"), other: None}
        there = place.at(layer=whole(other_layer), head=whole(other_head)).within(compared)
        if kind == SAME and there.owner == place.owner:
            there = next_head(there, compared)
        config = compared.config
        return {
            **shown,
            layer: gr.Dropdown([(str(i), i) for i in range(config.n_layers)], value=there.layer),
            head: gr.Dropdown([(str(i), i) for i in range(config.n_heads)], value=there.head),
            other_name: headline(compared, there),
            other: show(*enlarged(compared, there)),
        }

    extra = [frame.page.visitor, frame.page.model, frame.prompt, whose, model, layer, head]
    frame.follow(draw, [name, chart, model, layer, head, other_name, other], extra=extra)
    for picker in (whose, model, layer, head):
        frame.redraws(picker.input, of=picker)
    frame.moves(chart.select, clicked_pair)


def another(page: Page, visitor: str | None, first: str | None, chosen: str | None) -> str | None:
    """The model to compare with: the one that was chosen, unless that is the first one itself and there are others."""
    others = [model_id for _, model_id in page.registry.choices(visitor) if model_id != first]
    return others[0] if chosen == first and others else chosen


def next_head(place: Place, look: Look) -> Place:
    """The head after this one, in the next layer after a layer's last: no head is another one than itself."""
    heads, layers = look.config.n_heads, look.config.n_layers
    at = (place.layer * heads + place.head + 1) % (heads * layers)
    return place.at(layer=at // heads, head=at % heads)


def clicked_pair(look: Look, place: Place, event: gr.EventData) -> Place:
    """The query and the key of a cell that was clicked in a map of token against token."""
    part = window(look.length, place.query)
    row, column = cell_of(event, rows=part.stop - part.start, columns=part.stop - part.start)
    return place.at(query=part.start + row, key=part.start + column)


def headline(look: Look, place: Place) -> str:
    """Which head of which model this is, where its weight lies on this prompt, and its role where it was tested."""
    named = f"{look.checkpoint.name}: layer {place.layer}, head {place.head}"
    words = f"On this prompt it {lies_on(summary(look, *place.owner))}. {asked(look, place)}"
    if found := known(look):
        words += f" Tested on {found.tests.texts} texts, it {ROLE_NAMES[found.tests.role(*place.owner)]}."
    return theme.heading(named, words)


def asked(look: Look, place: Place) -> str:
    """Where the head's weight lies when the chosen token asks, as the receipt has it."""
    row = row_summary(look, *place.owner, place.query)
    return f"When {place.query} “{look.tokens[place.query]}” asks, it {row_lies_on(row, look.tokens)}."


def enlarged(look: Look, place: Place) -> tuple[dict[str, Any], str]:
    """One head's pattern with its row sums, and what to look for in it."""
    part = window(look.length, place.query)
    pattern = look.pattern(place.layer)[place.head].float().cpu().numpy()
    whole = part.stop - part.start == look.length
    figure = pattern_map(
        pattern[part, part],
        look.tokens[part],
        causal=look.config.causal,
        first=part.start,
        mark=cell(part, place.query, place.key),
        sums=whole,  # a part of a row does not sum to 1
    )
    return figure, describe_pattern(pattern, look.tokens) + window_words(look, part)
