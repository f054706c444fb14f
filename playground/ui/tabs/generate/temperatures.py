"""Temperatures side by side: one prompt, one seed, four ways to choose."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr
import torch

from ....data import visible
from ....engine import SamplingConfig, stream
from ....engine.sampling import probabilities
from ....figures.candidates import describe_temperatures, temperature_comparison
from ...chart import Chart, show
from ...page import Page
from ...prompts import read_prompt
from ...quoted import model_facts, quoted
from ...refusals import in_words
from .writing import Desk

TEMPERATURES = (0.1, 0.5, 1.0, 2.0)
TOKENS = 80
CANDIDATES = 8


def build(page: Page, desk: Desk) -> None:
    """A button, the next token's chances at each temperature, and a text for each."""
    gr.Markdown(
        "Scores are divided by the temperature before they become probabilities (softmax(z / T)). "
        "The order of the candidates never changes; how much the likeliest stands out does."
    )
    start = gr.Button("Compare temperatures", elem_id="compare-temperatures")
    chart = Chart(height=300, save_name="temperatures", elem_id="temperature-chart")
    texts = gr.HTML(elem_id="temperature-texts")

    def compare(values: dict) -> tuple[Any, str]:
        with in_words():
            checkpoint = page.registry.get(values[page.model], values[page.visitor])
            ids, _ = read_prompt(page, checkpoint, values[desk.prompt])
            sampling = desk.controls.sampling(values, top_k=None, top_p=1.0, min_p=0.0, greedy=False)
            length = min(TOKENS, page.limits.new_tokens)
            tokenizer, chances, cards = checkpoint.tokenizer, {}, []
            likeliest: list[int] = []
            for temperature in TEMPERATURES:
                chosen = heated(sampling, temperature)
                steps = list(stream(checkpoint.model, tokenizer, ids, length, chosen, shared=True))
                first = probabilities(steps[0].step.logits, torch.tensor([ids]), chosen)[0]
                likeliest = likeliest or first.topk(min(CANDIDATES, len(first))).indices.tolist()
                chances[temperature] = [first[t].item() for t in likeliest]
                entropy = torch.special.entr(first).sum().item()
                cards.append(_card(temperature, entropy, "".join(token.text for _, (token,) in steps)))
            labels = [visible(tokenizer.token_text(t)) for t in likeliest]
            figure = temperature_comparison(labels, chances)
            known = model_facts(page.registry, values[page.visitor], values[page.model])
            picture = quoted(show(figure, describe_temperatures(labels, chances)), **known, prompt=values[desk.prompt])
            return picture, f'<div class="by-temperature">{"".join(cards)}</div>'

    inputs = {page.visitor, page.model, desk.prompt, *desk.controls.inputs}
    start.click(compare, inputs, [chart, texts], concurrency_limit=2, api_visibility="private")
    # what another model wrote does not stay under this one's name
    page.model.change(None, None, [chart, texts], js="() => [null, '']", api_visibility="private")


def heated(rules: SamplingConfig, temperature: float) -> SamplingConfig:
    """The same rules at another temperature, also where 0 had made them greedy."""
    return rules.replace(temperature=temperature, greedy=False)


def _card(temperature: float, entropy: float, text: str) -> str:
    return (
        f"<div><strong>T = {temperature:g}</strong> <small>first choice: {entropy:.2f} nats of entropy, "
        f"like {pow(2.718281828, entropy):.1f} equal candidates</small><p>{html.escape(text)}</p></div>"
    )
