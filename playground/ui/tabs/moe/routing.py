"""Where do tokens go: every token's main expert in one layer; one token followed through all layers."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from ....data import visible
from ....figures.routing import journey_map
from ....inspection.routing import RoutedText, expert_layers, routing_of
from ....words.experts import journey_words, repeated_words
from ...chart import chart_place, show
from ...panel import Slot, chip, choice, slot
from ...prompts import read_prompt
from ...theme import notice
from .selection import PROMPT, At, prompts

TITLE = "Where do tokens go?"
THROUGH = "through all layers: share of the weight"
MOST_TOKENS = 256
"""More tokens than this cannot be told apart in a picture; the last ones are shown."""

TEMPLATE = f"""<div class="stack">{slot("routing-note")}
<div class="line">{slot("routing-headline", tag="h3", class_="grow")}{slot("layers")}</div>
<p class="quiet">Colour and number: each token's main expert in this layer. Tap a token to follow it.</p>
<div class="two">{slot("routing-text", id="routing-text", dir="auto")}
<div>{slot("routing-followed", id="routing-followed")}
{chart_place("journey", height=220, save_name="token-journey")}</div></div>
<details><summary>Another text</summary><div class="stack">{PROMPT}
{slot("routing-ideas", class_="line tight", data_arrows="")}</div></details></div>"""


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold. Raises ValueError if the text cannot be read."""
    c, checkpoint = at.chosen, at.mixture
    layer, layers = c.layer, expert_layers(checkpoint.config)
    ideas = prompts(at.page, c.mixture, at.visitor)
    ids, notes = read_prompt(at.page, checkpoint, c.prompt or "")
    ids = ids[-min(checkpoint.config.context_length, MOST_TOKENS) :]
    position = min(max(c.token, 0), len(ids) - 1)
    i, texts = layers.index(layer), [checkpoint.tokenizer.token_text(t) for t in ids]
    tokens, ends = [visible(each) for each in texts], ["\n" in each for each in texts]
    names = {str(each): str(each) for each in layers}
    text, here = (*at.about, tuple(ids)), (*at.about, tuple(ids), layer)

    @cache
    def routed() -> RoutedText:
        return routing_of(checkpoint.model, torch.tensor([ids]))

    def first() -> list[int]:
        return routed().experts[i, 0, :, 0].tolist()

    return {
        "layers": Slot((names, layer), lambda: choice("layer", "Layer", names, str(layer))),
        "routing-ideas": Slot(ideas, lambda: "".join(chip(text, _beginning(text)) for text in ideas)),
        "routing-headline": Slot(here, lambda: repeated_words(ids, first(), checkpoint.config.experts_per_token)),
        "routing-note": Slot(notes, lambda: "".join(notice(note, "warning") for note in notes)),
        "routing-text": Slot(
            (*here, position),
            lambda: expert_text(tokens, first(), checkpoint.config.n_experts, position, ends),
        ),
        "routing-followed": Slot(
            (*text, position),
            lambda: f"<h3>Token {position} “<bdi>{html.escape(tokens[position])}</bdi>” {THROUGH}</h3>",
        ),
        "journey": Slot(
            (*text, position), lambda: show(*_journey(routed(), tokens[position], position), aloud=True, token=position)
        ),
    }


def _beginning(text: str) -> dict[str, Any]:
    """The selection after choosing this text to try."""
    return {"prompt": text, "typed": False, "token": 0, "off": None}


def _journey(routing: RoutedText, token: str, position: int) -> tuple[dict[str, Any], str]:
    visited, shares = (each[:, 0, position].numpy() for each in (routing.experts, routing.weights))
    figure = journey_map(routing.dense_weights()[:, 0, position].numpy(), visited, routing.layers)
    return figure, journey_words(token, position, routing.layers, visited, shares)


def expert_text(
    tokens: Sequence[str], first: Sequence[int], n_experts: int, followed: int, ends: Sequence[bool]
) -> str:
    """Tokens as HTML with the experts (T,) that they chose first in one layer. Everything is escaped.

    `ends`: after which tokens the text begins a new line; they stay beside the token before.
    """
    spans = []
    for t, (token, expert, end) in enumerate(zip(tokens, first, ends)):
        mark = ' class="followed" aria-current="true"' * (t == followed)
        move = html.escape(f'{{"token": {t}}}', quote=True)
        spans.append(  # one stop for the tab key, arrow keys inside
            f'<button type="button" data-token="{t}" data-move="{move}"{mark} tabindex="{-(t != followed)}" '
            f'style="--hue: {360 * expert // n_experts}" title="token {t}: expert {expert}">'
            f"<b>{html.escape(token)}</b><i>{expert}</i></button>"
        )
        if end:
            before = spans.pop(-2) if t and not ends[t - 1] else ""
            spans[-1] = f'<span class="end">{before}{spans[-1]}</span><br>'
    return f'<div class="expert-text" data-arrows="">{"".join(spans)}</div>'
