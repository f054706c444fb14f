"""Verdicts: how good a model's text is, by its language's grammar or compared with the text that it learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..data import LANGUAGES, Tokenizer
from ..data.judging import LearnedText, judge
from ..kept import Kept
from ..model import Transformer
from ..storage import Checkpoint
from ..words.judging import FIRST_MISTAKES, LACKING, compared_summary, copied_summary, parsed_summary

_learned = Kept(entries=50, megabytes=64)


@dataclass(frozen=True)
class Verdict:
    """A judgement of a text in words, and the words in it to underline."""

    words: str
    marks: tuple[tuple[int, int, str], ...] = ()
    """(start, end, why) of words in the text, ascending."""
    legend: str = ""
    """What the underlines mean."""


def remember(model: Transformer, learned: LearnedText) -> None:
    """Keep the text that a model learned from as long as the model is here and there is room."""
    _learned.get("text", lambda: learned, owner=model)


def learned_by(model: Transformer) -> LearnedText | None:
    """The text that a model learned from, if still known."""
    return _learned.peek("text", owner=model)


def verdict(
    text: str, begun: str, *, language: str = "", tokenizer: Tokenizer | None = None, learned: LearnedText | None = None
) -> Verdict | None:
    """The verdict on a text that continues from `begun`; None if there is nothing to judge it by."""
    kind = tokenizer.kind if tokenizer is not None else "char"
    if language in LANGUAGES:
        return _by_grammar(language, text, begun, kind)
    if learned is None or learned.further:  # its words are of two texts
        return None
    found = learned.compare(text, begun)
    if kind == "word" or not learned.worded:  # the model can write no other words
        return Verdict(words) if (words := copied_summary(found)) else None
    why = "does not occur in the text it learned from"
    marks = tuple((start, end, why) for start, end in found.strange)
    return Verdict(compared_summary(found), marks, LACKING)


def verdicts_on(checkpoint: Checkpoint, texts: Sequence[str], begun: str) -> list[Verdict | None]:
    """The verdicts on what a model wrote."""
    language, learned = str(checkpoint.about.get("language") or ""), learned_by(checkpoint.model)
    return [verdict(text, begun, language=language, tokenizer=checkpoint.tokenizer, learned=learned) for text in texts]


def in_words(verdicts: Sequence[Verdict | None]) -> str:
    """The verdicts as sentences, numbered if there are several."""
    said = [(i, found.words) for i, found in enumerate(verdicts, 1) if found is not None]
    return " ".join(words if len(verdicts) == 1 else f"Text {i}: {words}" for i, words in said if words)


@lru_cache(maxsize=1000)
def _by_grammar(language: str, text: str, begun: str, kind: str) -> Verdict:
    found = judge(LANGUAGES[language], text, begun, spaced=kind != "word")
    marks = tuple((fault.start, fault.end, fault.rule) for fault in found.faults)
    return Verdict(parsed_summary(found), marks, legend=FIRST_MISTAKES.format(unit=LANGUAGES[language].units[0]))
