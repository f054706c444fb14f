"""Glossary: the terms of the page in plain words, for every place where one stands.

assets/glossary.json  the terms: each with its plain words, what it means, perhaps a formula, the names by which the
                      page calls it, and where to see it: a tab, perhaps a view of it, and an element's id
front/glossary.js     finds the names in what is open, underlines each once per screen, and explains a term where it is
                      clicked; by keys there is the button of the menu, and ?
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .own_files import ASSETS, FRONT, served_path

WORDS = ASSETS / "glossary.json"
BUTTON = '<button type="button" class="glossary-button" aria-haspopup="dialog">Glossary</button>'


@dataclass(frozen=True)
class Term:
    """One entry, as the file has it."""

    term: str
    plain: str
    """In one or a few plain words."""
    means: str
    names: list[str]
    see: dict[str, str]
    """tab, view and fold (or none), at (an element's id), and place, its name for the reader."""
    formula: str = ""


def terms() -> list[Term]:
    """All entries, in the order of the alphabet."""
    entries: list[dict[str, Any]] = json.loads(WORDS.read_text(encoding="utf-8"))
    return [Term(**entry) for entry in entries]


def head_html() -> str:
    """The tag for `launch(head=…)`; the terms themselves are fetched once the page stands still."""
    script = served_path(FRONT / "glossary.js")
    return f'<script id="playground-glossary" src="{script}" data-words="{served_path(WORDS)}" async></script>'
