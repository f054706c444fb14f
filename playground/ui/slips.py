"""A textbook slip on the page: folded, with the text's claim and what is true."""

from __future__ import annotations

import html

from ..words.slips import slip_sentences


def slips(*names: str) -> str:
    """Textbook slips as HTML, folded into one; those whose numbers cannot be computed here are left out. Escaped."""
    pairs = [[html.escape(part) for part in pair] for name in names if (pair := slip_sentences(name))]
    if not pairs:
        return ""
    says, truths = zip(*pairs)
    if len(pairs) == 1:
        inside = f"Textbook slip: {says[0]}</summary><p>{truths[0]}</p>"
    else:
        told = "".join(f"<p><b>{mistake}</b> {truth}</p>" for mistake, truth in pairs)
        inside = f"{len(pairs)} textbook slips</summary>{told}"
    return f'<details class="slip"><summary>{inside}</details>'
