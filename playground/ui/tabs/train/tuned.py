"""What training a model further has changed: both losses, and the same prompts continued before and after."""

from __future__ import annotations

import html

from ....service.views import RunView
from ....studies.finetune import Measured
from ....words.tuning import ORIGINS, noted_result


def tuned_html(view: RunView) -> str:
    """The details and the table, as HTML; empty for a model that was not trained further."""
    if not view.tuning:
        return ""
    before, after = (Measured.from_dict(view.tuning[when]) for when in ("before", "after"))
    said = noted_result(view.tuning, view.baselines).details
    prompts, origins = (given or [0] * len(before.samples) for given in (before.prompts, after.origins))
    rows = "".join(
        f"<tr><td>{ORIGINS.get(origin, '')}</td>{_cell(one, prompt)}{_cell(other, prompt)}</tr>"
        for one, other, prompt, origin in zip(before.samples, after.samples, prompts, origins)
    )
    return (
        f'<div id="tuned"><p class="quiet">{html.escape(said)}</p><details class="fold"><summary>'
        f'The same prompts, before and after</summary><table class="table"><tr><th>Prompt from</th><th>Before</th>'
        f"<th>After</th></tr>{rows}</table></details></div>"
    )


def _cell(text: str, prompt: int) -> str:
    """A text that begins with a prompt of this many characters."""
    given, written = html.escape(text[:prompt]), html.escape(text[prompt:])
    return f'<td class="sample" dir="auto"><span class="prompt">{given}</span>{written}</td>'
