"""Glossary: the terms of the page in plain words, for every place where one stands.

assets/glossary.json  the terms: each with its plain words, what it means, perhaps a formula, the names by which the
                      page calls it, and where to see it: a tab, perhaps a view of it, and an element's id
front/glossary.js     finds the names in what is open, underlines each once per screen, and explains a term where it is
                      clicked; by keys there is the button of the menu, and ?
"""

from __future__ import annotations

from .own_files import ASSETS, FRONT, served_path

WORDS = ASSETS / "glossary.json"
BUTTON = '<button type="button" class="glossary-button" aria-haspopup="dialog">Glossary</button>'


def head_html() -> str:
    """The tag for `launch(head=…)`; the terms themselves are fetched once the page stands still."""
    script = served_path(FRONT / "glossary.js")
    return f'<script id="playground-glossary" src="{script}" data-words="{served_path(WORDS)}" async></script>'
