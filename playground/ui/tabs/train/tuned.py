"""What training a model further has changed: the same prompts continued before and after."""

from __future__ import annotations

import html

from ....service.views import RunView
from ....studies.finetune import Measured
from ....words.tuning import ORIGINS
from ...theme import Cell, table


def tuned_html(view: RunView) -> str:
    """Each prompt with both texts, as a folded table in HTML; empty for a model that was not trained further."""
    if not view.tuning:
        return ""
    before, after = (Measured.from_dict(view.tuning[when]) for when in ("before", "after"))
    prompts, origins = (given or [0] * len(before.samples) for given in (before.prompts, after.origins))
    rows = [
        (ORIGINS.get(origin, ""), _cell(one, prompt), _cell(other, prompt))
        for one, other, prompt, origin in zip(before.samples, after.samples, prompts, origins)
    ]
    shown = table(("Prompt from", Cell("Before", kind="words"), Cell("After", kind="words")), rows)
    return f'<details id="tuned"><summary>The same prompts, before and after</summary>{shown}</details>'


def _cell(text: str, prompt: int) -> Cell:
    """A text that begins with a prompt of this many characters."""
    given, written = html.escape(text[:prompt]), html.escape(text[prompt:])
    return Cell(html=f'<p class="sample" dir="auto"><span class="prompt">{given}</span>{written}</p>', kind="words")
