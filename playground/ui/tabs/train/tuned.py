"""What training a model further has changed: both losses, and the same prompts continued before and after."""

from __future__ import annotations

import html
from typing import Any

from ....data import Baselines
from ....studies.finetune import Measured
from ....words.result import Result
from ....words.tuning import tuning_result


def tuned_result(tuning: dict[str, Any]) -> Result:
    """What it comes to; its headline stands over the run."""
    ladder = tuning.get("ladder")
    measured = (Measured.from_dict(tuning[when]) for when in ("before", "after"))
    return tuning_result(*measured, Baselines.from_dict(ladder) if ladder else None)


def tuned_html(tuning: dict[str, Any] | None) -> str:
    """The details and the table, as HTML; empty for a model that was not trained further."""
    if not tuning:
        return ""
    before, after = (Measured.from_dict(tuning[when]) for when in ("before", "after"))
    details = tuned_result(tuning).details
    rows = "".join(
        f'<tr><td dir="auto">{html.escape(one)}</td><td dir="auto">{html.escape(other)}</td></tr>'
        for one, other in zip(before.samples, after.samples)
    )
    return (
        f'<div id="tuned"><p class="quiet">{html.escape(details)}</p><details class="fold"><summary>The same prompts, '
        f'before and after</summary><table class="table"><tr><th>Before</th><th>After</th></tr>{rows}</table></details>'
        "</div>"
    )
