"""Views: where to look in a tab, as readable words of a URL's query."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..inspection.edits import from_dict, to_dict
from .letters import MAX_LETTERS, LinkError, cut


@dataclass(frozen=True)
class View:
    """Where to look: a tab, and what should stand in its controls. None leaves a control as it is."""

    tab: str
    model: str | None = None
    """A shipped model's name, or the id of one of the visitor's own."""
    dense: str | None = None
    """The model beside it, named likewise."""
    prompt: str | None = None
    layer: int | None = None
    """From 0."""
    head: int | None = None
    """From 0."""
    cell: tuple[int, int] | None = None
    """(query, key) of a map, from 0."""
    view: str | None = None
    """One of the views that the tab has."""
    step: str | None = None
    """A step of the walk."""
    subject: str | None = None
    """A worked example instead of the model."""
    edits: tuple[str, ...] | None = None
    """Changes in force, each the JSON of an edit."""
    rules: tuple[tuple[str, float], ...] = ()
    """Numbers of the tab's controls by name, switches as 0 and 1."""

    @classmethod
    def from_query(cls, query: Mapping[str, str], tabs: Sequence[str]) -> View:
        """From the words of a query, whoever wrote it. `tabs` are those there are. Raises LinkError."""
        tab = str(query.get("tab", ""))
        if tab not in tabs:
            raise LinkError(f"there is no tab called “{cut(tab)}” here; there are {', '.join(tabs)}")
        given = {name: text for name, text in query.items() if text}
        if any(not re.fullmatch(r"[\w.-]{1,80}", given[name]) for name in ("model", "dense") if name in given):
            raise LinkError("its model has no name that a model could have")
        prompt = query.get("prompt")
        if prompt is not None and len(prompt) > MAX_LETTERS:
            raise LinkError(f"its prompt has {len(prompt):,} characters; a link holds at most {MAX_LETTERS:,}")
        readers = {"layer": _number, "head": _number, "cell": _cell, "view": _word, "step": _step, "subject": _word,
                   "edits": _edits, "rules": _rules}  # fmt: skip
        read = {name: reader(name, given[name]) for name, reader in readers.items() if name in given}
        return cls(tab, given.get("model"), given.get("dense"), prompt, **read)


def _word(name: str, text: str) -> str:
    if not re.fullmatch(r"[a-z_-]{1,30}", text):
        raise LinkError(f"its {name} has no name that a {name} could have")
    return text


RENAMED_STEPS = {"calm": "qk_norm", "turn": "rotate", "blend": "mix", "change": "add", "think": "mlp"}
"""Steps of the walk that older links know by another name."""


def _step(name: str, text: str) -> str:
    return RENAMED_STEPS.get(text, _word(name, text))


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise LinkError(f"its {name} should be a whole number, not “{cut(text)}”")
    return int(text)


def _cell(name: str, text: str) -> tuple[int, int]:
    if len(text.split(",")) != 2:
        raise LinkError("its cell should be two numbers, like 7,3")
    query, key = text.split(",")
    return _number(name, query), _number(name, key)


def _edits(_: str, text: str) -> tuple[str, ...]:
    if len(text) > MAX_LETTERS:
        raise LinkError(f"its changes take {len(text):,} characters; a link holds at most {MAX_LETTERS:,}")
    try:
        listed = [to_dict(from_dict(each)) for each in json.loads(text)]
    except (TypeError, ValueError, RecursionError):
        raise LinkError("its changes cannot be read") from None
    return tuple(json.dumps(each, sort_keys=True) for each in listed)


def _rules(_: str, text: str) -> tuple[tuple[str, float], ...]:
    rules = [re.fullmatch(r"([a-z_]{1,30}):([0-9.e+-]{1,24})", each) for each in text[:MAX_LETTERS].split(",")]
    try:
        return tuple((rule[1], float(rule[2])) for rule in rules)
    except (TypeError, ValueError):
        raise LinkError("its rules of writing cannot be read") from None
