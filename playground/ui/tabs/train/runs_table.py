"""A visitor's runs side by side, with what differs between them."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence

from ....service.limits import Limits
from ....service.views import RunView
from ... import theme
from ...forms.fields import same
from ...forms.run import setting_name, setting_shown
from ...panel import move_button
from .watch import loss_text, seconds_of

BESIDE = 4
"""Most runs drawn beside the one that is shown."""


def runs_table(
    views: Sequence[RunView],
    shown: str | None,
    *,
    beside: Sequence[str] = (),
    alike: Collection[str] = (),
) -> str:
    """This visitor's runs, the newest first: results and settings that differ, marked if unlike the shown run's.

    Args:
        beside: the runs drawn beside the shown one.
        alike: runs that may be drawn beside it, because they learned from the same text.
    """
    if not views:
        return ""
    names = dict.fromkeys(name for view in views for name in view.settings if name != "steps")  # which have a column
    values = {name: [view.settings.get(name) for view in views] for name in names}
    settings = [name for name, (first, *others) in values.items() if not all(same(first, each) for each in others)]
    base = next((view for view in views if view.id == shown), views[-1])
    rows = []
    for view in reversed(views):
        value = view.of_model.val_loss
        differ = [
            theme.Cell(
                setting_shown(name, view.settings.get(name)),
                kind="" if same(view.settings.get(name), base.settings.get(name)) else "differs",
            )
            for name in settings
        ]
        name = theme.Cell(html=_named(view, shown, beside, alike))
        loss = "–" if value is None else loss_text(value)
        took = theme.duration(seconds_of(view)) if seconds_of(view) else "–"
        steps = f"{view.history.last_step:,}" + (f" (uses step {view.used:,})" if view.used is not None else "")
        rows.append([name, loss, steps, took, *differ])
    head = ["run", "validation loss", "steps done", "time", *map(setting_name, settings)]
    return theme.table(head, rows, classes="runs-table")


def _named(view: RunView, shown: str | None, beside: Sequence[str], alike: Collection[str]) -> str:
    """A run's name, as a button that shows it; before it, a tick box that draws it beside the shown run."""
    live = {"waiting": "queued", "failed": "failed"}.get(view.state, "live" if view.active else "")
    marks = ", ".join(filter(None, ("shown" if view.id == shown else "", live)))
    name, tick = f"<bdi>{html.escape(view.name)}</bdi>{f' ({marks})' if marks else ''}", ""
    if view.id in alike and view.id != shown:
        on, kept = view.id in beside, [each for each in beside if each != view.id]
        tick = move_button(
            "✓" if on else "",
            {"beside": kept if on else [*kept, view.id][-BESIDE:]},
            kind="tick",
            role="checkbox",
            aria_checked=str(on).lower(),
            aria_label=f"Draw {view.name} in the same chart",
            data_mark=view.id,
        )
    if view.id != shown and view.learned:
        name = f'<button type="button" class="link" data-choose="{html.escape(view.id)}">{name}</button>'
    return f'<span class="run-name">{tick}<span>{name}</span></span>'


def kept_words(limits: Limits, *, lasting: bool) -> str:
    """How long models are kept here."""
    if not lasting:
        return (
            f"Your last {limits.models_per_visitor} runs stay until the server restarts. Download any you want to keep."
        )
    if limits.keep_days is None:
        return f"Your last {limits.models_per_visitor} models stay on this machine."
    return f"Your last {limits.models_per_visitor} models stay for {limits.keep_days:g} days after you last used them."
