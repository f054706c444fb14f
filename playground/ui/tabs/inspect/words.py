"""Texts about steps as HTML: the four roles in their colours, tokens in their own direction, everything escaped."""

from __future__ import annotations

import html
import re

_ROLE = re.compile(r"\{([qkvs]):([^{}]*)\}")
_QUOTED = re.compile("“([^”]*)”")


def coloured(text: str) -> str:
    """Escaped HTML in which `{q:Q}` is a Q in the colour of queries, and “token” keeps its own writing direction."""
    isolated = _QUOTED.sub(r"“<bdi>\1</bdi>”", html.escape(text, quote=False))
    return _ROLE.sub(r'<span class="\1">\2</span>', isolated)
