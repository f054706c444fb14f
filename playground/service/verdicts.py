"""Verdicts: what a text that a model wrote is worth, by its language's grammar or beside the text that it learned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..data import LANGUAGES, Tokenizer
from ..data.judging import Learned, judge
from ..model import Transformer
from .kept import Kept

_learned = Kept(entries=50, megabytes=64)


@dataclass(frozen=True)
class Verdict:
    """What there is to say of a text, and which of its words to underline."""

    words: str
    marks: tuple[tuple[int, int, str], ...] = ()
    """(start, end, why) of words in the text, ascending."""


def remember(model: Transformer, learned: Learned) -> None:
    """Keep the text that a model learned from as long as the model is here, and there is room."""
    _learned.get("text", lambda: learned, owner=model)


def learned_by(model: Transformer) -> Learned | None:
    """The text that a model learned from, if it is known still."""
    return _learned.peek("text", owner=model)


def verdict(
    text: str, begun: str, *, language: str = "", tokenizer: Tokenizer | None = None, learned: Learned | None = None
) -> Verdict | None:
    """The verdict on a text that goes on from `begun`; None where there is nothing to judge it by."""
    kind = tokenizer.kind if tokenizer is not None else "char"
    if language in LANGUAGES:
        return _by_grammar(language, text, begun, kind)
    if learned is None:
        return None
    found = learned.compare(text, begun)
    if kind == "word":  # it knows no other words
        return Verdict(found.copied_in_words())
    why = "does not occur in the text it learned from"
    return Verdict(found.in_words(), tuple((start, end, why) for start, end in found.strange))


@lru_cache(maxsize=1000)
def _by_grammar(language: str, text: str, begun: str, kind: str) -> Verdict:
    found = judge(LANGUAGES[language], text, begun, spaced=kind != "word")
    fault = found.fault
    return Verdict(found.in_words(), ((fault.start, fault.end, fault.rule),) if fault is not None else ())
