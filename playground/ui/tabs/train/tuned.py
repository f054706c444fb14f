"""What training a model further has changed: both losses, and the same prompts continued before and after."""

from __future__ import annotations

import html
from typing import Any

from ....studies.finetune import Measured
from ....words.tuning import tuning_result


def tuned_html(tuning: dict[str, Any] | None) -> str:
    """The result and its table, as HTML; empty for a model that was not trained further."""
    if not tuning:
        return ""
    before, after = (Measured.from_dict(tuning[when]) for when in ("before", "after"))
    result = tuning_result(before, after)
    rows = "".join(
        f'<tr><td dir="auto">{html.escape(one)}</td><td dir="auto">{html.escape(other)}</td></tr>'
        for one, other in zip(before.samples, after.samples)
    )
    return (
        f'<div id="tuned"><h3>{html.escape(result.headline)}</h3><p class="num">{html.escape(result.number)}</p>'
        f'<p class="quiet">{html.escape(result.details)}</p><details class="fold"><summary>The same prompts, before and'
        f' after</summary><table class="table"><tr><th>Before</th><th>After</th></tr>{rows}</table></details></div>'
    )
