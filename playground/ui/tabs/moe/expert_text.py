"""A text whose tokens are coloured and numbered by the expert that they chose first; a tap follows one."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ....figures import palette
from ....figures.routing import expert_color


def expert_text(
    tokens: Sequence[str], first: Sequence[Sequence[int]], layers: Sequence[int], shown: int, followed: int | None
) -> str:
    """Tokens as HTML; under each, the expert it chose first in every layer. Everything is escaped.

    `first` (L, T) are those experts; a token takes its colour from layer `shown` (an index into `layers`).
    """
    spans, stop = [], followed or 0  # one stop for the tab key, arrow keys inside
    for t, token in enumerate(tokens):
        tip = ", ".join(f"layer {layer}: expert {row[t]}" for layer, row in zip(layers, first))
        numbers = "".join(f"<i{' class=shown' if i == shown else ''}>{row[t]}</i>" for i, row in enumerate(first))
        mark = ' class="followed" aria-current="true"' if t == followed else ""
        move = html.escape(f'{{"token": {t}}}', quote=True)
        spans.append(
            f'<button type="button" data-token="{t}" data-move="{move}"{mark} tabindex="{-(t != stop)}" '
            f'style="{expert_style(first[shown][t])}" '
            f'title="token {t} – {tip}"><b>{html.escape(token)}</b>{numbers}</button>'
        )
    names = "".join(f"<i{' class=shown' if i == shown else ''}>layer {n}</i>" for i, n in enumerate(layers))
    return (
        '<div class="expert-text" data-arrows=""><div class="expert-layers" aria-hidden="true">'
        f"<b>token</b>{names}</div>"
        f"{''.join(spans)}</div>"
    )


def expert_badge(expert: int) -> str:
    """An expert's number on its colour, for tables."""
    return f'<span class="expert-badge" style="{expert_style(expert)}">{expert}</span>'


def expert_style(expert: int) -> str:
    """The colour of an expert as CSS variables, for light and for dark pages."""
    color = expert_color(expert)
    return f"--expert:{color};--expert-dark:{palette.DARK[color]}"
