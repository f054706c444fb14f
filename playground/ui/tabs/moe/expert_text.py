"""A text in which each token has the colour and the number of its main expert; a tap follows one."""

from __future__ import annotations

import html
from collections.abc import Sequence


def expert_text(
    tokens: Sequence[str], first: Sequence[int], n_experts: int, followed: int, ends: Sequence[bool]
) -> str:
    """Tokens as HTML with the experts (T,) that they chose first in one layer. Everything is escaped.

    `ends`: after which tokens the text begins a new line; they stay beside the token before.
    """
    spans = []
    for t, (token, expert, end) in enumerate(zip(tokens, first, ends)):
        mark = ' class="followed" aria-current="true"' * (t == followed)
        move = html.escape(f'{{"token": {t}}}', quote=True)
        spans.append(  # one stop for the tab key, arrow keys inside
            f'<button type="button" data-token="{t}" data-move="{move}"{mark} tabindex="{-(t != followed)}" '
            f'style="--hue: {360 * expert // n_experts}" title="token {t}: expert {expert}">'
            f"<b>{html.escape(token)}</b><i>{expert}</i></button>"
        )
        if end:
            before = spans.pop(-2) if t and not ends[t - 1] else ""
            spans[-1] = f'<span class="end">{before}{spans[-1]}</span><br>'
    return f'<div class="expert-text" data-arrows="">{"".join(spans)}</div>'
