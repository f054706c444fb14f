"""Quoted: the line in every saved picture and table that says what it shows; and what sets its file name apart."""

from __future__ import annotations

import html
import re
from typing import Any

from .. import __version__
from ..figures.wire import escaped, shortened
from ..service.models import Registry

LONGEST = 160
"""Most characters of a prompt that are quoted."""


def quoted(content: Any, **facts: Any) -> Any:
    """A slot's content; a chart or a table that can be saved also gets the line of facts.

    Args:
        **facts: by name, in the order of the line: model, step, prompt, layer, head …; None is left out. A chart's own
            (`chart.show`) come before these.
    """
    if isinstance(content, dict) and "figure" in content:
        return {**content, "about": about(**facts | content.get("facts", {}))}
    if isinstance(content, str) and 'data-csv="' in content:
        said = {key: html.escape(text, quote=True) for key, text in about(**facts).items()}
        return content.replace("data-csv=", f'data-about="{said["line"]}" data-of="{said["name"]}" data-csv=')
    return content


def about(**facts: Any) -> dict[str, str]:
    """`line` goes under a picture and above a table (escaped for plotly), `name` after the file's own name."""
    known = {name: f"{f:,}" if isinstance(f, int) else str(f) for name, f in facts.items() if f is not None}
    parts, marks = [f"Transformer Playground {__version__}"], []
    for name, text in known.items():
        if name == "prompt":
            parts.append(f"prompt “{' ⏎ '.join(shortened(text, LONGEST).splitlines())}”")
        else:
            parts.append(text if name == "model" else f"{name} {text}")
            marks.append(text if name == "model" else f"{name}{text}".replace(",", ""))
    slugs = (re.sub(r"[^a-z0-9]+", "-", mark.lower()).strip("-") for mark in marks)
    return {"line": escaped(" · ".join([*parts[1:], parts[0]])), "name": "-".join(filter(None, slugs))[:80]}


def model_facts(registry: Registry, visitor: Any, *model_ids: Any) -> dict[str, Any]:
    """Names and steps of those models that still exist, as in this visitor's list."""
    names = {model_id: name for name, model_id in registry.choices(visitor)}
    known = {each: registry.get(each, visitor) for each in model_ids if registry.has(each, visitor)}
    steps = sorted({checkpoint.history.last_step for checkpoint in known.values()})
    return {
        "model": " and ".join(names.get(each, checkpoint.name) for each, checkpoint in known.items()) or None,
        "step": " and ".join(f"{step:,}" for step in steps) or None,
    }
