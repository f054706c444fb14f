"""TokenText: generated text whose tokens are shaded by their probability and can be clicked."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import gradio as gr

from ....data import Tokenizer
from ...figures.wire import percent

# 'select' is named for gr.HTML, which looks up the events of a component in this text.
_ON_LOAD = """
const pick = (target) => {
  const token = target.closest && target.closest("[data-place]");
  if (!token) return;
  element.querySelectorAll("[data-place].open").forEach((t) => t.classList.remove("open"));
  token.classList.add("open");
  const [sample, index] = token.dataset.place.split(":").map(Number);
  trigger("select", {index: [sample, index], value: token.textContent});
};
element.addEventListener("click", (event) => pick(event.target));
element.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(event.target); }
});
"""


def TokenText(*, elem_id: str) -> gr.HTML:
    """An empty text; its `.select` gives gr.SelectData with index [sample, token]."""
    return gr.HTML('<div class="written"></div>', js_on_load=_ON_LOAD, apply_default_css=False, elem_id=elem_id)


def plain(tokenizer: Tokenizer, prompt: Sequence[int], samples: Sequence[Sequence[int]]) -> str:
    """The text while it is being written, as HTML; everything escaped."""
    blocks = []
    for sample in samples:
        given, new = _texts(tokenizer, prompt, sample)
        if new.endswith("\N{REPLACEMENT CHARACTER}"):
            new = new[:-1]  # perhaps half a character whose other bytes are still to come
        blocks.append(f'<span class="given">{html.escape(given)}</span>{html.escape(new)}<span class="caret"></span>')
    return _framed(blocks)


def coloured(
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    samples: Sequence[Sequence[int]],
    probabilities: Sequence[Sequence[float]],
) -> str:
    """The finished text with each token in its own span, the darker the more it surprised the model."""
    blocks = []
    for s, (sample, chances) in enumerate(zip(samples, probabilities)):
        given, _ = _texts(tokenizer, prompt, sample)
        spans, before = [f'<span class="given">{html.escape(given)}</span>'], given
        for i, probability in enumerate(chances):
            after = tokenizer.decode([*prompt, *sample[: i + 1]])
            # a token that completes a character rewrites what its earlier bytes were shown as
            piece = after[len(before) :] if after.startswith(before) else tokenizer.token_text(sample[i])
            before = after
            spans.append(_span(s, i, piece, probability))
        blocks.append("".join(spans))
    return _framed(blocks)


def _span(sample: int, index: int, text: str, probability: float) -> str:
    surprise = min(-math.log2(max(probability, 1e-9)) / 8, 1.0)  # eight bits and more are equally dark
    shown = html.escape(text).replace("\n", '<span class="break">⏎</span>\n') or "∅"
    return (
        f'<span data-place="{sample}:{index}" tabindex="0" role="button" style="--surprise:{surprise:.3f}" '
        f'title="{html.escape(percent(probability))}">{shown}</span>'
    )


def _texts(tokenizer: Tokenizer, prompt: Sequence[int], sample: Sequence[int]) -> tuple[str, str]:
    given = tokenizer.decode(prompt)
    return given, tokenizer.decode([*prompt, *sample])[len(given) :]


def _framed(blocks: Sequence[str]) -> str:
    return f'<div class="written">{"<hr>".join(blocks)}</div>'
