"""Routing: which experts every token of a prompt visits in every layer; one token followed through all of them."""

from __future__ import annotations

from typing import Any

import gradio as gr
import numpy as np
import torch

from ....data import LANGUAGES, visible
from ....figures.routing import (
    describe_journey,
    describe_load,
    describe_routing,
    describe_weights,
    journey_map,
    load_bars,
    load_lines,
    routing_map,
)
from ....inspection.balance import UNHEARD_SHARE, evenness, load_over_training
from ....inspection.routing import RoutedText, Station, expert_layers, routing_of
from ....kept import Kept
from ....storage import Checkpoint
from ....words.numbers import signed
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientRadio
from ...links import linked_layer, linked_prompt
from ...page import QUIETLY, Page
from ...prompts import chip_text, chips, read_prompt, suggestions
from ...quoted import quoting
from ...refusals import in_words, sentence
from ...theme import Cell, heading, notice, quiet, table
from ...widgets.clicks import index_of
from ...widgets.turns import Turns
from .expert_text import ExpertText, expert_badge, expert_text
from .two_models import SHIPPED_MOE, TwoModels

TITLE = "Routing: where does each token go?"
_kept = Kept(entries=96, megabytes=64)
LINES = 110
"""Characters of the language that the text box opens with, rounded up to whole sentences."""
TEXT_SEED = 29
"""Three speakers take turns in the first lines of Dialects drawn with it."""
MOST_TOKENS = 256
"""More tokens than this cannot be told apart in a picture; the last ones are shown."""


def build(two: TwoModels) -> None:
    """Prompt and layer on top, the coloured text, then the token that is followed, then the load."""
    page = two.page
    first = texts_to_route(page, _default(two), None)
    with gr.Row(equal_height=False):
        prompt = gr.Textbox(
            first[0], label="Text to send through the experts", lines=2, max_lines=6, scale=3, elem_id="routing-prompt"
        )
        layer = LenientRadio([("0", 0)], value=0, label="Layer", scale=1, min_width=220, elem_id="routing-layer")
        token = gr.Number(
            0, label="Token to follow", precision=0, minimum=0, info="Or click it in the text.", scale=1, min_width=150,
            elem_id="routing-token",
        )  # fmt: skip
    ideas = gr.Dataset(components=[prompt], **chips(first), label="Texts this model knows", type="values")
    gr.HTML(
        heading(
            "Text coloured by first-choice expert",
            "The colour is the expert that a token prefers in the chosen layer; the numbers under it are its first "
            "choices in every layer. Click a token to follow it.",
        )
    )
    text = ExpertText(elem_id="routing-text")
    note = gr.HTML(elem_id="routing-note")
    weights = Chart(height=260, save_name="routing", clickable=True, elem_id="routing-map")
    followed = gr.HTML(elem_id="routing-followed")
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=300):
            journey = Chart(height=220, save_name="token-journey", elem_id="routing-journey")
        with gr.Column(scale=3, min_width=320):
            table = gr.HTML(elem_id="routing-table")
    gr.HTML(heading("Load: how much work each expert gets"))
    with gr.Row(equal_height=False):
        with gr.Column(min_width=320):
            load = Chart(height=220, save_name="load", elem_id="routing-load")
        with gr.Column(min_width=320):
            over = Chart(height=280, save_name="load-over-training", elem_id="routing-load-over-training")
    over_note = gr.HTML(elem_id="routing-load-note")

    drawn = [text, note, weights, followed, journey, table, load, over, over_note]
    inputs = [page.visitor, two.moe, prompt, layer, token]

    def draw(visitor: str | None, model_id: str | None, words: str, layer_number: Any, position: Any) -> dict:
        try:
            checkpoint = page.registry.get(model_id, visitor)
            ids, notes = read_prompt(page, checkpoint, words)
            ids = ids[-min(checkpoint.config.context_length, MOST_TOKENS) :]
            routing = _kept.get(
                tuple(ids), lambda: routing_of(checkpoint.model, torch.tensor([ids])), owner=checkpoint.model
            )
            return dict(zip(drawn, _pictures(checkpoint, routing, ids, notes, layer_number, position)))
        except ValueError as problem:  # in the place of what was drawn of another text
            return _nothing(sentence(str(problem)), "error")

    def _nothing(words: str, kind: str) -> dict:
        return {**dict.fromkeys(drawn), note: notice(words, kind)}

    draw = quoting(draw, page.registry, prompt="words", layer="layer_number", token="position")

    def another_model(visitor: str | None, model_id: str | None, request: gr.Request | None) -> dict:
        """New suggestions and layers; or one sentence where there is no mixture to look at."""
        try:
            checkpoint = page.registry.get(model_id, visitor)
            layers = expert_layers(checkpoint.config)
        except ValueError as problem:
            return _nothing(sentence(str(problem)), "warning")
        known = texts_to_route(page, model_id, visitor)
        words, opening = linked_prompt(request, "moe", model_id), linked_layer(request, "moe", model_id)
        words = known[0] if words is None else words
        if opening not in layers:
            opening = layers[min(1, len(layers) - 1)]  # the first layer's router has read little but the token itself
        return {
            prompt: words,
            ideas: gr.Dataset(**chips(known)),
            layer: gr.Radio([(str(n), n) for n in layers], value=opening),
            token: 0,
            **draw(visitor, model_id, words, opening, 0),
        }

    two.on_change(another_model, [page.visitor, two.moe], [prompt, ideas, layer, token, *drawn], linked=True)
    turns = Turns("moe-routing")
    for event in (prompt.change, prompt.submit, layer.input, token.change):
        turns.calls(event, draw, inputs, drawn)
    ideas.click(chip_text, ideas, prompt, **QUIETLY)

    @in_words()
    def clicked(event: gr.EventData) -> int:
        return index_of(event, MOST_TOKENS)

    for picture in (text, weights):
        picture.select(clicked, None, token, **QUIETLY)
    page.share("moe.prompt", prompt)
    page.share("moe.layer", layer)


def texts_to_route(page: Page, model_id: str | None, visitor: str | None) -> list[str]:
    """A few lines of the model's language, where it has one, then beginnings that it knows."""
    known = suggestions(page, model_id, visitor)
    try:
        language = LANGUAGES.get(page.registry.get(model_id, visitor).about.get("language") or "")
    except ValueError:
        language = None
    return known if language is None else [language.sample(LINES, seed=TEXT_SEED).rstrip("\n"), *known]


def _default(two: TwoModels) -> str | None:
    return SHIPPED_MOE if two.page.registry.has(SHIPPED_MOE, None) else None


def _pictures(
    checkpoint: Checkpoint, routing: RoutedText, ids: list[int], notes: list[str], layer: Any, position: Any
) -> list[Any]:
    """Everything this part shows, in the order of its outputs."""
    if layer not in routing.layers:
        layer = routing.layers[-1]
    position = min(max(int(position or 0), 0), len(ids) - 1)
    i, E = routing.layers.index(layer), routing.n_experts
    tokens = [visible(checkpoint.tokenizer.token_text(t)) for t in ids]
    experts, weights = routing.experts[i, 0].numpy(), routing.weights[i, 0].numpy()
    stations = routing.stations(position)
    visited = np.array([s.experts for s in stations])
    chances = np.array([s.probabilities for s in stations])
    shares = np.array([s.weights for s in stations])
    load, weight = routing.load[i].numpy(), routing.weight[i].numpy()
    even, heard = evenness(load.tolist()), evenness(weight.tolist(), UNHEARD_SHARE)
    words = describe_weights(
        len(ids), (even.effective, even.dead), (heard.effective, heard.dead),
        [e for e, share in enumerate(routing.first[i].tolist()) if share == 0],
    )  # fmt: skip
    return [
        expert_text(tokens, routing.experts[:, 0, :, 0].tolist(), routing.layers, i, position),
        "".join(notice(n) for n in notes),
        show(
            routing_map(routing.dense_weights()[i, 0].T.numpy(), tokens, position),
            describe_routing(experts, weights, tokens, layer, E),
        ),
        heading(f"Token {position} “{tokens[position]}” through all layers"),
        show(
            journey_map(chances, visited, routing.layers),
            describe_journey(tokens[position], position, routing.layers, visited, shares),
        ),
        scores_table(stations),
        show(load_bars(load, weight), words),
        *_over_training(checkpoint, routing, i, layer),
    ]


def _over_training(checkpoint: Checkpoint, routing: RoutedText, i: int, layer: int) -> tuple[Any, str]:
    over = load_over_training(checkpoint.history.load, len(routing.layers), routing.n_experts)
    if over is None:
        return None, notice("This model's record holds no loads from its training.")
    steps, load = over
    first, last = (evenness(load[moment, i].tolist()) for moment in (0, -1))
    words = describe_load(
        last.entropy, last.most, last.busiest, last.busiest_share, last.dead,
        f"Layer {layer} in training, step {steps[-1]:,}: the",
    )  # fmt: skip
    began = f" At step {steps[0]:,} its entropy was {first.entropy:.2f} bits." if len(steps) > 1 else ""
    return show(load_lines(steps, load[:, i].numpy()), words + began), ""


def scores_table(stations: list[Station]) -> str:
    """The router's scores as numbers, one row per layer; visited experts stand out, full precision as tooltips."""
    E = len(stations[0].logits)
    rows = []
    for s in stations:
        visits = " ".join(f"{expert_badge(e)} {w:.2f}" for e, w in zip(s.experts, s.weights))
        margin = "all" if s.margin == float("inf") else signed(s.margin)
        scores = [
            Cell(signed(x), x, title=repr(x).replace("-", "−"), kind="chosen" if e in s.experts else "")
            for e, x in enumerate(s.logits)
        ]
        rows.append((s.layer, Cell(html=visits), margin, *scores))
    told = "Margin: the lowest score of those visited minus the highest of those left out; near 0, they were close."
    if any(s.margin < 0 for s in stations):
        told += " Below 0 the bias chose, which keeps the load even, and not the score alone."
    caption = "The router’s scores (logits) of this token"
    shown = table(("layer", "visits, weight", "margin", *range(E)), rows, caption=caption, save="router-scores")
    return shown + quiet(told)
