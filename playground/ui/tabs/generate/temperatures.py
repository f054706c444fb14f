"""Temperatures side by side: one prompt, one seed, four ways to choose."""

from __future__ import annotations

import html
from typing import Any

import torch

from ....engine import SamplingConfig, stream
from ....engine.sampling import probabilities
from ....figures.candidates import temperature_comparison
from ....kept import Kept
from ....storage import Checkpoint
from ....words.pictures import temperatures_words
from ...chart import chart_place, show
from ...page import Page
from ...panel import Slot, move_button, slot
from ...prompts import read_prompt
from .choice import label_of
from .selection import Selection

TEMPERATURES = (0.1, 0.5, 1.0, 2.0)
TOKENS, CANDIDATES = 80, 8
NOW = "now"

TEMPLATE = f"""<div class="card"><h3>Temperatures</h3>
<p class="quiet">Scores ÷ temperature, then softmax. The order never changes; the lead of the likeliest does.</p>
{move_button(f"Compare {', '.join(f'{t:g}' for t in TEMPERATURES)}", {"heat": NOW}, kind="ghost compare-temperatures")}
<div data-if="heat">{chart_place("heat-chart", height=300, save_name="temperatures")}{slot("heat-texts")}</div></div>"""

_compared = Kept(entries=64, megabytes=8)


Compared = tuple[list[str], dict[float, list[float]], list[str]]
"""Tokens; their probabilities by temperature; the text at each temperature."""


def snapshot(chosen: Selection, page: Page) -> Selection:
    """The selection with the present prompt and seed, if the button was pressed. Raises ValueError."""
    if chosen.heat != NOW:
        return chosen
    rules = chosen.sampling(page.limits)
    return chosen.moved(heat=[chosen.prompt or "", rules.seed, rules.repetition_penalty])


def slots(page: Page, checkpoint: Checkpoint, chosen: Selection) -> dict[str, Slot]:
    """The picture and the texts, if they were requested."""
    if not chosen.heat:
        return {}
    about = (chosen.model, checkpoint.history.last_step, chosen.heat)

    def picture() -> dict[str, Any] | None:
        labels, chances, _ = compared(page, checkpoint, chosen.heat)
        words = temperatures_words(labels, chances)
        return show(temperature_comparison(labels, chances), words, prompt=chosen.heat[0])

    def texts() -> str:
        cards = "".join(map(_card, TEMPERATURES, compared(page, checkpoint, chosen.heat)[2]))
        return f'<div class="by-temperature">{cards}</div>'

    return {"heat-chart": Slot(about, picture, slow=True), "heat-texts": Slot(about, texts, slow=True)}


def compared(page: Page, checkpoint: Checkpoint, asked: Any) -> Compared:
    """The first choice and a text at each temperature. Raises ValueError for what no page sends."""
    try:
        prompt, seed, penalty = asked
        rules = SamplingConfig(seed=int(seed), repetition_penalty=float(penalty))
        ids, _ = read_prompt(page, checkpoint, prompt)
    except (TypeError, AttributeError, OverflowError):
        raise ValueError("These settings cannot be read. Press “Compare” again") from None
    length = min(TOKENS, page.limits.new_tokens)

    def write() -> Compared:
        tokenizer, chances, texts = checkpoint.tokenizer, {}, []
        likeliest: list[int] = []
        for temperature in TEMPERATURES:
            hot = rules.replace(temperature=temperature)
            steps = list(stream(checkpoint.model, tokenizer, ids, length, hot, shared=True))
            first = probabilities(steps[0].step.logits, torch.tensor([ids]), hot)[0]
            likeliest = likeliest or first.topk(min(CANDIDATES, len(first))).indices.tolist()
            chances[temperature] = [first[t].item() for t in likeliest]
            texts.append("".join(token.text for _, (token,) in steps))
        return [label_of(tokenizer, t) for t in likeliest], chances, texts

    key = (tuple(ids), rules.seed, rules.repetition_penalty, checkpoint.history.last_step)
    return _compared.get(key, write, owner=checkpoint.model)


def _card(temperature: float, text: str) -> str:
    return f'<div><strong>{temperature:g}</strong><p dir="auto"><samp>{html.escape(text)}</samp></p></div>'
