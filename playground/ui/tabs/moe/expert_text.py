"""ExpertText: a text whose tokens are coloured and numbered by the expert they chose first, and can be clicked."""

from __future__ import annotations

import html
from collections.abc import Sequence

import gradio as gr

from ...figures import palette
from ...figures.routing import expert_color

# 'select' is named for gr.HTML, which looks up the events of a component in this text.
_ON_LOAD = """
const pick = (target) => {
  const token = target.closest && target.closest("[data-token]");
  if (token) trigger("select", {index: [0, Number(token.dataset.token)], value: token.textContent});
};
element.addEventListener("click", (event) => pick(event.target));
element.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(event.target); }
});
"""


def ExpertText(*, elem_id: str) -> gr.HTML:
    """An empty text; its `.select` gives gr.SelectData with index [0, token]."""
    return gr.HTML('<div class="expert-text"></div>', js_on_load=_ON_LOAD, apply_default_css=False, elem_id=elem_id)


def expert_text(
    tokens: Sequence[str], experts: Sequence[Sequence[int]], weights: Sequence[Sequence[float]], followed: int | None
) -> str:
    """Tokens as HTML, each in the colour of its first expert with that number under it; everything escaped."""
    spans = []
    for i, (token, chosen, shares) in enumerate(zip(tokens, experts, weights)):
        tip = ", ".join(f"expert {e} ({share:.2f})" for e, share in zip(chosen, shares))
        mark = ' class="followed" aria-current="true"' if i == followed else ""
        spans.append(
            f'<span data-token="{i}"{mark} tabindex="0" role="button" style="{expert_style(chosen[0])}" '
            f'title="token {i}: {tip}"><b>{html.escape(token)}</b><i>{chosen[0]}</i></span>'
        )
    return f'<div class="expert-text">{"".join(spans)}</div>'


def expert_badge(expert: int) -> str:
    """An expert's number on its colour, for tables."""
    return f'<span class="expert-badge" style="{expert_style(expert)}">{expert}</span>'


def expert_style(expert: int) -> str:
    """The colour of an expert as CSS variables, for light and for dark pages."""
    color = expert_color(expert)
    return f"--expert:{color};--expert-dark:{palette.DARK[color]}"
