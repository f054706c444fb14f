"""ExpertText: a text whose tokens are coloured and numbered by the expert they chose first, and can be clicked."""

from __future__ import annotations

import html
from collections.abc import Sequence

import gradio as gr

from ....figures import palette
from ....figures.routing import expert_color

# 'select' is named for gr.HTML, which looks up the events of a component in this text.
_ON_LOAD = """
const pick = (target) => {
  const token = target.closest && target.closest("[data-token]");
  if (token) trigger("select", {index: [0, Number(token.dataset.token)], value: token.textContent});
};
element.addEventListener("click", (event) => pick(event.target));
element.addEventListener("keydown", (event) => {
  const token = event.target.closest && event.target.closest("[data-token]");
  if (!token || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = Array.from(element.querySelectorAll("[data-token]")), at = all.indexOf(token), last = all.length - 1;
  const to = {
    ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: last,
  }[event.key];
  if (to !== undefined) {
    const next = all[Math.min(Math.max(to, 0), last)];
    token.tabIndex = -1; next.tabIndex = 0; next.focus();
  } else if (event.key === "Enter" || event.key === " ") pick(token);
  else return;
  event.preventDefault();
});
"""


def ExpertText(*, elem_id: str) -> gr.HTML:
    """An empty text; its `.select` gives gr.SelectData with index [0, token]."""
    return gr.HTML('<div class="expert-text"></div>', js_on_load=_ON_LOAD, apply_default_css=False, elem_id=elem_id)


def expert_text(
    tokens: Sequence[str], first: Sequence[Sequence[int]], layers: Sequence[int], shown: int, followed: int | None
) -> str:
    """Tokens as HTML with the expert each chose first in every layer under it; everything escaped.

    `first` (L, T) are those experts; a token takes its colour from layer `shown` (an index into `layers`).
    """
    spans, stop = [], followed or 0  # one stop of the tab key, arrows inside
    for t, token in enumerate(tokens):
        tip = ", ".join(f"layer {layer}: expert {row[t]}" for layer, row in zip(layers, first))
        numbers = "".join(
            f'<i style="{expert_style(row[t])}"{" class=shown" if i == shown else ""}>{row[t]}</i>'
            for i, row in enumerate(first)
        )
        mark = ' class="followed" aria-current="true"' if t == followed else ""
        spans.append(
            f'<span data-token="{t}"{mark} tabindex="{-(t != stop)}" role="button" '
            f'style="{expert_style(first[shown][t])}" title="token {t} – {tip}">'
            f"<b>{html.escape(token)}</b>{numbers}</span>"
        )
    names = "".join(f"<i{' class=shown' if i == shown else ''}>layer {n}</i>" for i, n in enumerate(layers))
    return (
        f'<div class="expert-text"><div class="expert-layers" aria-hidden="true"><b>token</b>{names}</div>'
        f"{''.join(spans)}</div>"
    )


def expert_badge(expert: int) -> str:
    """An expert's number on its colour, for tables."""
    return f'<span class="expert-badge" style="{expert_style(expert)}">{expert}</span>'


def expert_style(expert: int) -> str:
    """The colour of an expert as CSS variables, for light and for dark pages."""
    color = expert_color(expert)
    return f"--expert:{color};--expert-dark:{palette.DARK[color]}"
