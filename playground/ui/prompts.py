"""Prompts: how a tab reads one, and beginnings that suit a model."""

from __future__ import annotations

from ..data import LANGUAGES, visible
from ..storage import Checkpoint
from .page import Page


def read_prompt(page: Page, checkpoint: Checkpoint, prompt: str) -> tuple[list[int], list[str]]:
    """The prompt as ids, and what a visitor should know about how it was read."""
    page.limits.check_prompt(prompt or "")
    ids = checkpoint.tokenizer.encode(prompt or "")
    if not ids:
        raise ValueError("The prompt is empty: type a beginning, or choose one of the suggestions")
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
    """Beginnings that suit the model: its own prompt, its language's, and the start of its last sample."""
    try:
        checkpoint = page.registry.get(model_id, visitor)
    except ValueError:
        return ["Once upon a time"]
    found = [checkpoint.about.get("prompt") or ""]
    language = LANGUAGES.get(checkpoint.about.get("language") or "")
    if language:
        # what a shipped model was sampled with is nobody's choice: better one after which much is open
        found.insert(0 if str(model_id).startswith("shipped-") else 1, language.prompt)
        found += _first_words(language.sample(400, seed=len(checkpoint.name)))
    for sample in checkpoint.history.samples[-1:]:
        found += [sample.get("prompt", ""), *_first_words(sample.get("text", ""))]
    kept = list(dict.fromkeys(s for s in found if isinstance(s, str) and s.strip()))
    return kept[:4] or ["Once upon a time"]


def _first_words(text: str) -> list[str]:
    """The beginnings of a few lines."""
    lines = [line for line in text.split("\n")[1:4] if line.strip()]
    return [" ".join(line.split(" ")[:4]) for line in lines]
