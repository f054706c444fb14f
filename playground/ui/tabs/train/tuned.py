"""What training a model further has changed: both losses, and the same prompts continued before and after."""

from __future__ import annotations

import html
from typing import Any

from ....studies.finetune import Measured
from ....words.tuning import noted_result


def tuned_html(tuning: dict[str, Any] | None) -> str:
    """The details and the table, as HTML; empty for a model that was not trained further."""
    if not tuning:
        return ""
    before, after = (Measured.from_dict(tuning[when]) for when in ("before", "after"))
    details = noted_result(tuning).details
    prompts = before.prompts or [0] * len(before.samples)
    rows = "".join(
        f"<tr>{_cell(one, prompt)}{_cell(other, prompt)}</tr>"
        for one, other, prompt in zip(before.samples, after.samples, prompts)
    )
    return (
        f'<div id="tuned"><p class="quiet">{html.escape(details)}</p><details class="fold"><summary>The same prompts, '
        f'before and after</summary><table class="table"><tr><th>Before</th><th>After</th></tr>{rows}</table></details>'
        "</div>"
    )


def _cell(text: str, prompt: int) -> str:
    """A text that begins with a prompt of this many characters."""
    given, written = html.escape(text[:prompt]), html.escape(text[prompt:])
    return f'<td class="sample" dir="auto"><span class="prompt">{given}</span>{written}</td>'
