"""ExpertText: a text whose tokens are coloured and numbered by the expert they chose first, and can be clicked."""

from __future__ import annotations

import html
from collections.abc import Sequence

import gradio as gr

from ....figures import palette
from ....figures.routing import expert_color

# 'select' is named for gr.HTML, which looks up the events of a component in this text
_ON_LOAD = "window.playgroundTokens(element, trigger); /* 'select' */"


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
            f'<span data-token="{t}" data-place="0:{t}"{mark} tabindex="{-(t != stop)}" role="button" '
            f'style="{expert_style(first[shown][t])}" '
            f'title="token {t} – {tip}"><b>{html.escape(token)}</b>{numbers}</span>'
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
