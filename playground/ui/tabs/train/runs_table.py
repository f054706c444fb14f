"""The runs of a visitor side by side, with what differs between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....figures.wire import signed
from ....service.limits import Limits
from ....service.views import RunView
from ... import theme
from .form import setting_name
from .watch import loss_text, seconds_of


def runs_table(views: Sequence[RunView], shown: str | None, departed: Sequence[str] = ()) -> str:
    """This visitor's runs, the newest first, with only those settings in which they differ; and what has left."""
    left = theme.notice(f"Gone, to make room for newer ones: {', '.join(departed)}.", "warning") if departed else ""
    if not views:
        return left + theme.notice("Your runs will stand here side by side, with only what differs between them.")
    differing = differing_settings([view.settings for view in views])
    head = ["run", "steps made", "validation loss", "above floor", "time", *(setting_name(name) for name in differing)]
    rows = []
    for view in reversed(views):
        value, floor = view.history.val_loss, view.ladder.floor if view.ladder else None
        mark = " (shown)" if view.id == shown else ""
        live = {"waiting": ", in line", "failed": ", failed"}.get(view.state, ", live" if view.active else "")
        rows.append(
            [
                view.name + mark,
                f"{view.history.last_step:,}{live}",
                "–" if value is None else loss_text(value),
                "–" if value is None or floor is None else signed(value - floor, 4, plus=True),
                theme.duration(seconds_of(view)) if seconds_of(view) else "–",
                *(setting(view.settings.get(name)) for name in differing),
            ]
        )
    same = "" if len(views) < 2 or differing else theme.quiet("All settings are the same.")
    return left + theme.table(head, rows) + same


def kept_words(limits: Limits) -> str:
    """How long runs are kept here."""
    if limits.kind == "public":
        forgets = "This Space forgets your runs when it falls asleep or starts anew"
    else:
        forgets = "Runs are kept until this server is started anew"
    return f"{forgets}, at most {limits.models_per_visitor} of them: take along, as a zip, what you want to keep."


def differing_settings(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the settings that are not the same in all of these, in their usual order."""
    names = list(dict.fromkeys(name for values in settings for name in values))
    return [name for name in names if len({repr(values.get(name)) for values in settings}) > 1]


def setting(value: Any) -> str:
    """A setting's value as the page writes it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
