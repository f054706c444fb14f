"""Side by side: what both models expect after a prompt, and what both write from the same seed."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import gradio as gr
import torch

from ....data import visible
from ....engine import SamplingConfig, stream
from ....figures.side_by_side import both_expect, describe_both
from ....service.runs import predict
from ....storage import Checkpoint
from ...chart import Chart, show
from ...forms.fields import whole
from ...forms.sampling import sampling
from ...page import QUIETLY, Page
from ...prompts import chip_text, chips, read_prompt, suggestions
from ...quoted import model_facts, quoted
from ...theme import badge, notice, quiet
from ...widgets.turns import Turns
from .two_models import TwoModels

TITLE = "Predictions side by side"
CANDIDATES = 8
TOKENS = 60


def build(two: TwoModels) -> None:
    """A prompt, a button, bars for the next token, and a text by each."""
    page = two.page
    first = suggestions(page, two.dense.value, None)
    with gr.Row(equal_height=False):
        prompt = gr.Textbox(first[0], label="Prompt", lines=1, max_lines=4, scale=3, elem_id="side-prompt")
        temperature = gr.Slider(0, 2, 0.8, step=0.05, label="Temperature", info="0 is greedy.", scale=1, min_width=160)
        length = gr.Slider(
            1, min(200, page.limits.new_tokens), TOKENS, step=1, label="New tokens", scale=1, min_width=160
        )
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, info="The same for both.", scale=1, min_width=110)
    ideas = gr.Dataset(components=[prompt], **chips(first), label="Beginnings they know", type="values")
    ask = gr.Button("Ask both", variant="primary", elem_id="side-ask")
    note = gr.HTML(padding=False, elem_id="side-note")
    expected = Chart(height=300, save_name="both-expect", elem_id="side-chart")
    texts = gr.HTML(padding=False, elem_id="side-texts")
    inputs = [page.visitor, two.dense, two.moe, prompt, temperature, length, seed]
    outputs = [note, expected, texts]

    def answer(visitor, dense_id, moe_id, prompt, temperature, length, seed):
        pair = [page.registry.get(model_id, visitor) for model_id in (dense_id, moe_id)]
        length = whole("new tokens", length)
        page.limits.check_generation(length)
        about = model_facts(page.registry, visitor, dense_id, moe_id)
        rules = sampling({"temperature": temperature, "seed": seed})
        return quoted(answers(page, *pair, prompt, rules, length), **about, prompt=prompt)

    turns = Turns("moe-sidebyside")
    for event in (ask.click, prompt.submit):
        turns.calls(event, answer, inputs, outputs, slow=True)

    def another_pair(visitor, dense_id):
        known = suggestions(page, dense_id, visitor)
        return known[0], gr.Dataset(**chips(known)), "", None, ""  # what the pair before it said leaves

    two.on_change(another_pair, [page.visitor, two.dense], [prompt, ideas, *outputs])
    ideas.click(chip_text, ideas, prompt, **QUIETLY)


def answers(
    page: Page, dense: Checkpoint, moe: Checkpoint, prompt: str, rules: SamplingConfig, length: int
) -> tuple[str, dict[str, Any] | None, str]:
    """(notes, chart of what both expect next, both texts). Raises ValueError where the prompt cannot be read."""
    read = [read_prompt(page, checkpoint, prompt) for checkpoint in (dense, moe)]
    notes = list(dict.fromkeys(text for _, found in read for text in found))
    chart = None
    if dense.tokenizer.to_dict() == moe.tokenizer.to_dict():
        ids = [tokens[-checkpoint.config.context_length :] for checkpoint, (tokens, _) in zip((dense, moe), read)]
        chart = show(*expectations(dense, moe, *ids))
    else:
        notes.append("These two cut text into different pieces, so their next tokens cannot be laid side by side.")
    given, new = [], []
    for checkpoint, (ids, _) in zip((dense, moe), read):
        tokenizer = checkpoint.tokenizer
        given.append(tokenizer.decode(ids))
        streamed = stream(checkpoint.model, tokenizer, ids, length, rules, shared=True)
        new.append("".join(token.text for _, (token,) in streamed))
    return "".join(notice(text, "warning") for text in notes), chart, both_texts(given, new, greedy=rules.greedy)


def expectations(
    dense: Checkpoint, moe: Checkpoint, dense_ids: Sequence[int], moe_ids: Sequence[int]
) -> tuple[dict[str, Any], str]:
    """Bars of the likeliest next tokens, by the mean of both, and their sentence."""
    there = predict(dense.model, list(dense_ids)), predict(moe.model, list(moe_ids))
    V = min(len(p) for p in there)
    p, q = (each[:V].double() for each in there)
    likeliest = (p + q).topk(min(CANDIDATES, V)).indices.tolist()
    labels = [visible(dense.tokenizer.token_text(t)) if t < dense.tokenizer.vocab_size else f"#{t}" for t in likeliest]
    given = labels, [p[t].item() for t in likeliest], [q[t].item() for t in likeliest]
    return both_expect(*given), describe_both(*given, divergence(p, q))


def divergence(p: torch.Tensor, q: torch.Tensor) -> float:
    """Jensen–Shannon divergence in nats of two distributions (V,): 0 where equal, ln 2 where nothing is shared."""
    middle = (p + q) / 2
    entropy = torch.special.entr
    return max((entropy(middle).sum() - (entropy(p).sum() + entropy(q).sum()) / 2).item(), 0.0)


def both_texts(given: Sequence[str], new: Sequence[str], *, greedy: bool = False) -> str:
    """Two texts side by side, with a mark where they part. Escaped."""
    same = next((i for i, (a, b) in enumerate(zip(*new)) if a != b), min(map(len, new)))
    cards = []
    for name, kind, start, text in zip(("Dense", "MoE"), ("dense", "moe"), given, new):
        shared, own = html.escape(text[:same]), html.escape(text[same:])
        cards.append(
            f'<div>{badge(name, kind)}<p class="sample"><span class="prompt">{html.escape(start)}</span>{shared}'
            f'<mark class="parted parted-{kind}">{own}</mark></p></div>'
        )
    if new[0] == new[1]:
        words = "Both wrote the same."
    else:
        place = f"after {same:,} character{'s' * (same > 1)}; what follows is marked" if same else "at the first token"
        if greedy:
            words = f"Each takes its likeliest token; they part {place}."
        elif same:
            words = f"The same draws, yet they part {place}."
        else:
            words = f"They part {place}: the same draw falls on different tokens."
    return f'{quiet(words)}<div class="by-temperature">{"".join(cards)}</div>'
