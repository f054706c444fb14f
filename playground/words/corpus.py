"""Corpora: why validation losses on a text may mean little."""

from __future__ import annotations

from ..data import Corpus, visible
from ..data.overlap import MUCH, NEARLY_ALL, OtherKind
from .numbers import listed

REMEDY = "Paste more text, or a text that repeats itself less."


def corpus_warning(corpus: Corpus) -> str:
    """Why this text's validation losses would mean little; empty if they are fine."""
    return f"{overlap_warning(corpus.overlap())} {kind_warning(corpus.other_kind())}".strip()


def overlap_warning(share: float) -> str:
    """The warning for a text whose validation part repeats this share of the training part."""
    if share < MUCH:
        return ""
    shows = f" A low validation loss would only show a good memory. {REMEDY}" if share < NEARLY_ALL else ""
    return f"{100 * share:.0f} % of the validation text also occurs in the training text.{shows}"


def kind_warning(other: OtherKind | None) -> str:
    """The warning for a text whose end differs from the rest."""
    if other is None:
        return ""
    characters = listed([f"“{visible(character)}”" for character in other.characters])
    return (
        f"The last tenth of this text, used for validation, differs from the rest. Its share of {characters} is "
        f"{100 * other.here:.0f} %, against {100 * other.there:.0f} % before. Shuffle the parts of the text."
    )
