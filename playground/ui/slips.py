"""A textbook slip on the page: folded, with the text's claim and what is true."""

from __future__ import annotations

import html

from ..words.slips import slip_sentences


def slips(*names: str) -> str:
    """Textbook slips as HTML, each folded; those whose numbers cannot be computed here are left out. Escaped."""
    pairs = [[html.escape(part) for part in pair] for name in names if (pair := slip_sentences(name))]
    return "".join(
        f'<details class="slip"><summary>Textbook slip: {says}</summary><p>{truth}</p></details>'
        for says, truth in pairs
    )
