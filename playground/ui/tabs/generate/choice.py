"""A choice, opened again: the scores a token was chosen from, rule by rule, and going on with another one."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr
import torch

from ....data import Tokenizer, visible
from ....engine import explain
from ....engine.inference_model import inference_model
from ....engine.request import default_slide, window_start
from ....figures.candidates import describe_sampling_steps, sampling_steps
from ....model import Transformer
from ....storage import Checkpoint
from ....words.numbers import percent
from ...chart import show
from ...quoted import quoted
from .written import Written

TABLE_ROWS = 12
HOW = {"drawn": "how it was chosen", "chosen": "your choice", "kept": "kept from before"}


def opened(checkpoint: Checkpoint, written: Written, sample: int, index: int) -> tuple:
    """The opened choice: heading, chart, table, the list of alternatives, and the two numbers."""
    sample, index = _place(written, sample, index)
    rows = rows_of(checkpoint, written, sample, index)
    chosen_token = written.samples[sample][index]
    chosen = next(i for i, row in enumerate(rows) if row.token == chosen_token)
    labels = [label_of(checkpoint.tokenizer, row.token) for row in rows]
    drawn = [
        {
            "label": label,
            "raw_probability": row.raw_probability,
            "tempered_probability": row.tempered_probability,
            "probability": row.probability,
            "removed_by": row.removed_by,
        }
        for label, row in zip(labels, rows)
    ]
    table = [
        [
            ("▸ " if i == chosen else "") + label,
            f"{row.logit:.2f}",
            percent(row.raw_probability),
            f"{row.score:.2f}",
            percent(row.tempered_probability),
            row.removed_by or "",
            percent(row.probability),
        ]
        for i, (label, row) in enumerate(zip(labels, rows))
    ]
    came = "drawn" if index >= written.kept else "chosen" if index == written.kept - 1 else "kept"
    heading = f"**Token {index + 1:,}: “{_markdown(labels[chosen])}”** – {HOW[came]}"
    about = {"model": written.name, "prompt": checkpoint.tokenizer.decode(written.prompt), "token": index + 1}
    about |= {"seed": str(written.sampling.seed)}
    picture = sampling_steps(drawn, chosen=chosen, penalised=written.sampling.repetition_penalty != 1)
    words = describe_sampling_steps(drawn, chosen=chosen, came=came)
    return (
        gr.Column(visible=True),
        heading,
        quoted(show(picture, words), **about),
        table,
        gr.Dropdown(
            choices=[(f"{label} ({percent(row.raw_probability)})", str(row.token)) for label, row in zip(labels, rows)],
            value=str(rows[chosen].token),
        ),
        gr.Number(index + 1, maximum=len(written.samples[sample])),
        gr.Number(sample + 1, visible=len(written.samples) > 1, maximum=len(written.samples)),
    )


def branch(
    checkpoint: Checkpoint, written: Written, sample: int, index: int, token: Any
) -> tuple[list[int], list[int], list[float]]:
    """Prompt, kept tokens with the new one at their end, and the model's probabilities of them."""
    sample, index = _place(written, sample, index)
    try:
        token = int(token)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("Choose the token to go on with first: in the list, or by clicking its bar") from None
    if token not in range(checkpoint.config.vocab_size):
        raise ValueError("The model does not know that token: choose one from the list")
    logits, _ = scores_of(checkpoint.model, written, sample, index)
    probability = logits.softmax(0)[token].item()
    return (
        written.prompt,
        [*written.samples[sample][:index], token],
        [*written.probabilities[sample][:index], probability],
    )


def rows_of(checkpoint: Checkpoint, written: Written, sample: int, index: int):
    sample, index = _place(written, sample, index)
    logits, ids = scores_of(checkpoint.model, written, sample, index)
    return explain(logits, ids, written.sampling, rows=TABLE_ROWS, always=(written.samples[sample][index],))


@torch.inference_mode()
def scores_of(model: Transformer, written: Written, sample: int, index: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The scores (V,) that token `index` was chosen from, computed again, and the ids (T,) before it."""
    ids, T = torch.tensor(written.prompt + written.samples[sample][:index]), model.config.context_length
    prompt = len(written.prompt) + max(start for start in written.starts if start <= index)
    window = ids[window_start(prompt, len(ids), T, default_slide(T)) :]
    return inference_model(model, written.precision).prefill(window[None])[0].float(), ids


def _place(written: Written, sample: int, index: int) -> tuple[int, int]:
    if not 0 <= sample < len(written.samples):
        raise ValueError(f"There are {len(written.samples)} samples: choose one of them")
    if not 0 <= index < len(written.samples[sample]):
        raise ValueError(f"The text has {len(written.samples[sample]):,} new tokens: choose one of them")
    return sample, index


def label_of(tokenizer: Tokenizer, token: int) -> str:
    return visible(tokenizer.token_text(token))


def _markdown(text: str) -> str:
    """A token's text where Markdown is read: nothing in it may mean anything."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|~$" else html.escape(c) for c in text)
