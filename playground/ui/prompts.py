"""Prompts: how a tab reads a prompt, and beginnings that suit a model."""

from __future__ import annotations

import itertools
import re

from ..data import visible
from ..data.tokenizers import in_known_case
from ..service.runs import OWN_TEXT
from ..service.texts import learned
from ..storage import Checkpoint
from .page import Page

SEARCHED = 1_000_000
"""How many characters of a text are searched for a prompt's words."""
SHORT = 8
"""Characters in a beginning if the text has no words."""
NO_CHARACTER = "\N{REPLACEMENT CHARACTER}"


def read_prompt(page: Page, checkpoint: Checkpoint, prompt: str) -> tuple[list[int], list[str]]:
    """The prompt as ids, and what a visitor should know about how it was read."""
    page.limits.check_prompt(prompt or "")
    prompt = in_known_case(prompt or "", checkpoint.tokenizer)
    ids = checkpoint.tokenizer.encode(prompt)
    if not ids:
        raise ValueError("The prompt is empty: type one, or choose a suggestion")
    notes = []
    unknown = checkpoint.tokenizer.unknown_parts(prompt)
    if unknown:
        shown = ", ".join(f"“{visible(u)}”" for u in unknown[:6]) + (" …" if len(unknown) > 6 else "")
        stand_in = checkpoint.tokenizer.decode(checkpoint.tokenizer.encode(unknown[0]))
        notes.append(f"This model never saw {shown}; it reads {stand_in} instead.")
    context = checkpoint.config.context_length
    if len(ids) > context:
        notes.append(f"The prompt has {len(ids):,} tokens; the model sees the last {context:,} of them.")
    return ids, notes


def suggestions(page: Page, model_id: str | None, visitor: str | None) -> list[str]:
    """Prompts that suit the model and that it can read: its own, its language's, words from its training text.

    Never words from its own writing: a model that has learned little writes none that occur in its text.
    """
    try:
        checkpoint = page.registry.get(model_id, visitor)
    except ValueError:
        return ["Once upon a time"]
    source = page.board.source_of(checkpoint)
    asked = [checkpoint.about.get("prompt"), *(sample.get("prompt") for sample in checkpoint.history.samples[-1:])]
    if source is not None and source.kind == OWN_TEXT:  # a prompt may be left over from another text
        asked = [prompt for prompt in asked if isinstance(prompt, str) and _stands_in(source.text, prompt)]
    found, language = asked[:1], checkpoint.language
    if language:
        # nobody chose a shipped model's sample prompt: a beginning with an open continuation is better
        found.insert(0 if str(model_id).startswith("shipped-") else 1, language.prompt)
    found += [*_beginnings(learned(source, checkpoint)), *asked[1:]]
    known = [s for s in found if isinstance(s, str) and s.strip() and NO_CHARACTER not in s]
    known = [s for s in known if not checkpoint.tokenizer.unknown_parts(s)]
    return list(dict.fromkeys(known))[:4] or [_any_beginning(checkpoint)]


def _stands_in(text: str, prompt: str) -> bool:
    """Whether all the prompt's words occur in the text, as far as it is searched."""
    return all(word in text[:SEARCHED] for word in prompt.split())


def _beginnings(text: str) -> list[str]:
    """The whole first words of a few lines or sentences, in a text whose own start and end may be cut off."""
    whole = text[: max(text.rfind(" "), text.rfind("\n"), 0)]
    if not whole.strip():  # a script without spaces
        return [text.strip()[:SHORT]]
    starts = [s.split()[:4] for s in re.split(r"\n+|(?<=[.!?])\s+", whole)[1:]]
    starts = [words for words in starts if len(words) > 1] or [whole.split()[1:5]]
    return [" ".join(words)[:60] for words in starts[:3]]


def _any_beginning(checkpoint: Checkpoint) -> str:
    """For a model about which nothing is known: a beginning, or any piece of text, that it can read."""
    tokenizer = checkpoint.tokenizer
    pieces = (tokenizer.token_text(token) for token in range(tokenizer.vocab_size))
    tried = itertools.chain(("The ", "the", "A", "a"), pieces)
    return next((piece for piece in tried if piece.strip() and not tokenizer.unknown_parts(piece)), "The ")
