"""Corpora in words: why validation losses on a text may say little."""

from __future__ import annotations

from ..data import Corpus, visible
from ..data.overlap import MUCH, OtherKind, other_kind


def corpus_warning(corpus: Corpus) -> str:
    """Why this text's validation losses would say little; empty where they say what they should."""
    return f"{overlap_warning(corpus.overlap())} {kind_warning(corpus.other_kind())}".strip()


def overlap_warning(share: float) -> str:
    """Of a text of which this share of the validation part stands in the training part."""
    if share < MUCH:
        return ""
    return (
        f"{100 * share:.0f} % of the text that judges the model stands word for word in the text it learns from, so a "
        "low validation loss shows a good memory here. Paste more text, or one that repeats itself less."
    )


def text_warning(learned: str, judging: str) -> str:
    """Of a text before it is taken apart, in its two parts."""
    return kind_warning(other_kind(learned, judging))


def kind_warning(other: OtherKind | None) -> str:
    """That the end of a text, which judges, is another kind than the rest."""
    if other is None:
        return ""
    *others, last = (f"“{visible(character)}”" for character in other.characters)
    listed = f"{', '.join(others)} and {last}" if others else last
    return (
        f"The last tenth of the text, which judges, is another kind of text than the rest: {listed} "
        f"{'are' if others else 'is'} {100 * other.here:.0f} % of it and {100 * other.there:.0f} % of what is learned "
        "from. Shuffle the text’s parts, so that both hold some of each kind."
    )
