"""A text whose tokens are numbered by the expert that they chose first; a tap follows one, and marks those like it."""

from __future__ import annotations

import html
from collections.abc import Sequence


def expert_text(
    tokens: Sequence[str], first: Sequence[Sequence[int]], layers: Sequence[int], shown: int, followed: int | None
) -> str:
    """Tokens as HTML; under each, the expert it chose first in every layer. Everything is escaped.

    `first` (L, T) are those experts; those that chose the
    followed one's expert in layer `shown` (an index into `layers`) are coloured.
    """
    spans, stop = [], followed or 0  # one stop for the tab key, arrow keys inside
    for t, token in enumerate(tokens):
        tip = ", ".join(f"layer {layer}: expert {row[t]}" for layer, row in zip(layers, first))
        numbers = "".join(f"<i{' class=shown' if i == shown else ''}>{row[t]}</i>" for i, row in enumerate(first))
        same = followed is not None and first[shown][t] == first[shown][followed]
        classes = " ".join(name for name, there in (("same", same), ("followed", t == followed)) if there)
        mark = f' class="{classes}"' + ' aria-current="true"' * (t == followed)
        move = html.escape(f'{{"token": {t}}}', quote=True)
        spans.append(
            f'<button type="button" data-token="{t}" data-move="{move}"{mark} tabindex="{-(t != stop)}" '
            f'title="token {t} – {tip}"><b>{html.escape(token)}</b>{numbers}</button>'
        )
    names = "".join(f"<i{' class=shown' if i == shown else ''}>layer {n}</i>" for i, n in enumerate(layers))
    return (
        '<div class="expert-text" data-arrows=""><div class="expert-layers" aria-hidden="true">'
        f"<b>token</b>{names}</div>"
        f"{''.join(spans)}</div>"
    )
