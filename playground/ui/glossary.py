"""Glossary: the page's terms in plain words, wherever one appears.

assets/glossary.json  the terms: each with plain words, a meaning, perhaps a formula, its names on the page, and
where to see it: a tab, perhaps a view of it, and an element's id
front/glossary.js     finds the names on the open tab, underlines each once per screen, and explains a term when it is
clicked; from the keyboard, use the menu's button
"""

from __future__ import annotations

from .own_files import ASSETS, FRONT, served_path

WORDS = ASSETS / "glossary.json"
BUTTON = '<button type="button" class="glossary-button" aria-haspopup="dialog">Glossary</button>'


def head_html() -> str:
    """The tag for `launch(head=…)`; the terms themselves are fetched once the page has loaded."""
    script = served_path(FRONT / "glossary.js")
    return f'<script id="playground-glossary" src="{script}" data-words="{served_path(WORDS)}" async></script>'
