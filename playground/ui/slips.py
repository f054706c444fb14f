"""A textbook slip on the page: folded, with what a text says and what is true."""

from __future__ import annotations

import html

from ..inspection.slips import told


def slips(*names: str) -> str:
    """These slips as HTML, each folded; those whose numbers cannot be computed here are left out. Escaped."""
    known = [[html.escape(part) for part in pair] for name in names if (pair := told(name))]
    return "".join(
        f'<details class="slip"><summary>Textbook slip: {says}</summary><p>{truth}</p></details>'
        for says, truth in known
    )
