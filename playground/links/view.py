"""Views: where to look in a tab, as readable words in a URL's query."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..inspection.edits import from_dict, to_dict
from .letters import MAX_LETTERS, LinkError, cut


@dataclass(frozen=True)
class View:
    """Where to look: a tab, and the values of its controls. None leaves a control unchanged."""

    tab: str
    model: str | None = None
    """A shipped model's name, or the id of one of the visitor's own."""
    dense: str | None = None
    """The model to compare with, named the same way."""
    prompt: str | None = None
    layer: int | None = None
    """From 0."""
    head: int | None = None
    """From 0."""
    cell: tuple[int, int] | None = None
    """(query, key) of a cell in a map, from 0."""
    view: str | None = None
    """The view within the tab."""
    step: str | None = None
    """A step of the walk."""
    subject: str | None = None
    """A worked example to show instead of the model."""
    edits: tuple[str, ...] | None = None
    """Changes in force, each the JSON of an edit."""
    rules: tuple[tuple[str, float], ...] = ()
    """Numbers of the tab's controls by name, switches as 0 and 1."""

    @classmethod
    def from_query(cls, query: Mapping[str, str], tabs: Sequence[str]) -> View:
        """A view from an untrusted query; `tabs` lists those that exist. Raises LinkError."""
        tab = str(query.get("tab", ""))
        if tab not in tabs:
            raise LinkError(f"there is no tab called “{cut(tab)}” here; there are {', '.join(tabs)}")
        for name in ("prompt", "edits", "rules"):
            if len(query.get(name) or "") > MAX_LETTERS:
                raise LinkError(f"its {name} has too many letters: a link holds at most {MAX_LETTERS:,}")
        given = {name: text for name, text in query.items() if text}
        return cls(tab, prompt=query.get("prompt"), **{n: _read(n, given[n]) for n in _FORMS if n in given})


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _rules(text: str) -> tuple[tuple[str, float], ...]:
    return tuple((rule, float(number)) for rule, number in (each.split(":") for each in text.split(",")))


def _edits(text: str) -> tuple[str, ...]:
    return tuple(json.dumps(to_dict(from_dict(each)), sort_keys=True) for each in json.loads(text))


_RULE = r"[a-z_]{1,30}:[0-9.e+-]{1,24}"
_FORMS = {
    **dict.fromkeys(("model", "dense"), (r"[\w.-]{1,80}", str)),
    **dict.fromkeys(("view", "step", "subject"), (r"[a-z_-]{1,30}", str)),
    **dict.fromkeys(("layer", "head"), (r"[0-9]{1,4}", int)),
    "cell": (r"[0-9]{1,4},[0-9]{1,4}", _numbers),
    "edits": (r"(?s).*", _edits),
    "rules": (f"{_RULE}(,{_RULE})*", _rules),
}
"""The form of a query's words, and the function that reads one."""


def _read(name: str, text: str) -> Any:
    """Read a word of a query as the field of a View. Raises LinkError."""
    pattern, reader = _FORMS[name]
    try:
        if re.fullmatch(pattern, text):
            return reader(text)
    except (TypeError, ValueError, RecursionError):
        pass
    raise LinkError(f"its {name} cannot be read: “{cut(text)}”")
