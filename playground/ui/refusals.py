"""Refusals: how a ValueError from the layers below becomes a sentence on the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr


@contextmanager
def in_words() -> Iterator[None]:
    """Turn ValueErrors from the layers below into sentences for a program, in which settings keep their names."""
    try:
        yield
    except ValueError as problem:
        raise gr.Error(sentence(str(problem), labels=False), print_exception=False) from problem


LABELS: dict[str, str] = {}
"""A setting's name in the layers below → its name on the page; the forms fill it in."""


def sentence(text: str, *, labels: bool = True) -> str:
    """The text with an initial capital and a final full stop.

    With `labels`, settings are named as on their controls; programs know them by their own names.
    """
    text = text.strip() or "Something went wrong"
    if labels:
        text = re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", lambda found: LABELS.get(found[0], found[0]), text)
    start = text[:1] if "_" in text.split(" ", 1)[0] else text[:1].upper()
    return start + text[1:] + ("" if text.endswith((".", "!", "?", "…")) else ".")
