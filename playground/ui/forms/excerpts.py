"""Excerpts: what a language looks like, and what a visitor's own text holds, as HTML beside the choice. All escaped."""

from __future__ import annotations

import html
import re
from collections import Counter
from functools import lru_cache

from ...data import LANGUAGES
from ...data.corpus import MIN_TOKENS
from ...data.sentences import SENTENCES as TWENTY
from ...service.runs import SENTENCES
from ..theme import quiet

LINES, LETTERS = 3, 110
"""Most lines in an excerpt, and most characters of all lines together."""


@lru_cache(maxsize=16)
def note_of(source: str, note: str) -> str:
    """Some lines of an example, with a note as their title."""
    lines = list(TWENTY) if source == SENTENCES else LANGUAGES[source].sample(600, seed=1).splitlines()
    return _excerpt([line for line in lines if line.strip()], note)


def contents_of(text: str, *, by_heart: bool = False) -> str:
    """A text's length, and whether a model will memorise it, as HTML; empty for an empty text."""
    if not text.strip():
        return ""
    counts = Counter(text)
    said = f"{len(text):,} character{'s' if len(text) != 1 else ''}, {len(counts):,} different."
    if by_heart and len(text) >= MIN_TOKENS:
        said += " The model will memorise a text this short."
    return quiet(said)


def beginning_of(text: str, kind: str = "") -> str:
    """The first words of a text's first line, unchanged, for a prompt; a part of the first word if it is long.

    For a tokenizer of `kind` char with the blank after them, or the model might go on with the last word.
    """
    words = re.match(r"\S+(?:[^\S\r\n]+\S+){0,3}" + r"[^\S\r\n]?" * (kind == "char"), text.strip()[:1000])
    begun = words.group() if words else ""
    return begun if len(begun) <= 40 else re.sub(r"\s+\S*$", "", begun[:41])[:40]


def _excerpt(lines: list[str], note: str) -> str:
    whole = "\n".join(lines[:LINES])
    cut = whole[:LETTERS].rstrip()
    more = " …" if len(cut) < len(whole) else "\n…" if len(lines) > LINES else ""
    title = html.escape(note, quote=True)
    return f'<pre class="excerpt" dir="auto" title="{title}">{html.escape(cut)}{more}</pre>'
