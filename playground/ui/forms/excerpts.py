"""Excerpts: what a language looks like, and what a text of one's own holds, as HTML beside the choice. All escaped."""

from __future__ import annotations

import html
import re
from collections import Counter
from functools import lru_cache

from ...data import LANGUAGES, visible
from ...data.corpus import MIN_TOKENS, parted
from ...data.sentences import SENTENCES as TWENTY
from ...service.runs import SENTENCES
from ...words.corpus import text_warning
from ..theme import quiet

LINES, LETTERS = 3, 180
"""Lines of an excerpt, and characters of all together."""
ALPHABET = 80
"""Different characters that are listed one by one."""
SHORT = 2000
"""Characters below which a text is soon known by heart."""


@lru_cache(maxsize=16)
def note_of(source: str, note: str) -> str:
    """A choice's note, and some lines of the language as it is written."""
    if source == SENTENCES:
        lines = list(TWENTY)
    elif source in LANGUAGES:
        lines = LANGUAGES[source].sample(600, seed=1).splitlines()
    else:
        return quiet(note)
    return quiet(note) + _excerpt([line for line in lines if line.strip()])


def contents_of(text: str) -> str:
    """How long a text is, what it is made of, and how it begins."""
    if not text.strip():
        return ""
    counts = Counter(text)
    lines, words = text.strip().splitlines(), len(text.split())
    said = (
        f"{len(text):,} character{'s' if len(text) != 1 else ''}, {len(counts):,} different "
        f"one{'s' if len(counts) != 1 else ''}, in {len(lines):,} line{'s' if len(lines) != 1 else ''} and about "
        f"{words:,} word{'s' if words != 1 else ''}."
    )
    if len(text.encode(errors="surrogatepass")) < MIN_TOKENS:  # no pieces are smaller than a byte
        said += f" That is too little to learn from: a model needs at least {MIN_TOKENS} tokens, better 5,000."
    elif len(text) < SHORT:
        said += " That is little: after a few steps, a model can only learn it by heart."
    if len(text) >= MIN_TOKENS:
        cut = parted(len(text))
        said += f" {text_warning(text[:cut], text[cut:])}".rstrip()
    listed = "".join(visible(character) for character in sorted(counts)[:ALPHABET])
    more = f" … and {len(counts) - ALPHABET:,} more" if len(counts) > ALPHABET else ""
    alphabet = f'<p class="quiet-line alphabet">{html.escape(listed)}{more}</p>'
    return quiet(said) + alphabet + _excerpt([line for line in lines if line.strip()])


def beginning_of(text: str) -> str:
    """The first words of a text's first line as they stand there, for a prompt; a piece of the first if it is long."""
    words = re.match(r"\S+(?:[^\S\r\n]+\S+){0,3}", text.strip()[:1000])
    begun = words.group() if words else ""
    return begun if len(begun) <= 40 else re.sub(r"\s+\S*$", "", begun[:41])[:40]


def _excerpt(lines: list[str]) -> str:
    whole = "\n".join(lines[:LINES])
    cut = whole[:LETTERS].rstrip()
    more = " …" if len(cut) < len(whole) else "\n…" if len(lines) > LINES else ""
    return f'<pre class="excerpt">{html.escape(cut)}{more}</pre>'
