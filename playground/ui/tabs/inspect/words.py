"""Formulas and sentences of the walk as HTML: the four roles in their colours, everything else escaped."""

from __future__ import annotations

import html
import re

_ROLE = re.compile(r"\{([qkvs]):([^{}]*)\}")


def coloured(text: str) -> str:
    """`{q:Q}` becomes Q in the colour of queries; escaped."""
    return _ROLE.sub(r'<span class="\1">\2</span>', html.escape(text, quote=False))
