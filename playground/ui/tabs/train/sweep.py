"""Try several values: how the field is read, and the panel with the sweep's table and chart."""

from __future__ import annotations

import html
from typing import Any

from ....figures.sweep import sweep_chart
from ....model import ModelConfig
from ....service.limits import Limits
from ....service.sweeps import SweepJob, SweepView
from ....studies.sweep import SEEDS, Sweep
from ....training import TrainConfig
from ....words.result import Result
from ....words.sweep import loss_shown, sweep_result
from ... import theme
from ...chart import chart_place, show
from ...forms import run as form
from ...forms.fields import is_number
from ...page import Page
from ...panel import Asked, Shown, Slot, deed_button, slot
from ...under_way import left, progress

TEMPLATE = f"""<div class="card stack" id="sweep" data-if="there">{slot("newest")}{slot("stop")}{slot("bar")}
{slot("headline", tag="h2")}{slot("about", tag="p", class_="quiet", dir="auto")}
{slot("number", tag="p", class_="num")}{slot("details", tag="p", class_="quiet")}
{chart_place("chart", height=240, save_name="sweep")}{slot("table")}
{slot("problem", tag="p", class_="notice notice-error", role="alert")}</div>"""


def build(page: Page) -> None:
    """Add the sweep's panel to the layout."""
    page.panels.add(
        "sweep", lambda asked: show_sweep(page, asked), TEMPLATE, start={"there": False}, follows=True,
        elem_id="sweep-panel",
    )  # fmt: skip
    page.panels.act("stop_sweep", lambda asked: page.board.stop(asked.visitor, kind=SweepJob) and None)


def asked_for(text: str, limits: Limits) -> Sweep:
    """The sweep typed into the field, such as “Learning rate = 0.001, 0.01”. Raises ValueError with a sentence."""
    name, _, values = text.partition("=")
    name = name.strip()
    field = next((each for each in form.FIELDS if name.lower() in (each.name, each.label.lower())), None)
    if field is None or field.name in ("tokenizer", "vocab_size"):
        raise ValueError(f"There is no setting “{name[:40]}”. Write, for example, Learning rate = 0.001, 0.01.")
    read = tuple(field.read(_value(value.strip()), limits) for value in values.split(","))
    return Sweep(field.name, read, seeds_here(limits))


def seeds_here(limits: Limits) -> int:
    """The number of seeds with which each value is tried."""
    return min(SEEDS, limits.seeds)


def runs_of(
    text: str, shape: ModelConfig, config: TrainConfig, limits: Limits
) -> list[tuple[ModelConfig, TrainConfig]]:
    """The runs that this field asks for; a single one if it holds no possible sweep."""
    try:
        sweep = asked_for(text, limits)
        return [sweep.configs(shape, config, value) for value in sweep.values] * sweep.seeds
    except ValueError:
        return [(shape, config)]


def _value(text: str) -> Any:
    try:
        found = float(text)
    except ValueError:
        return text
    return found if is_number(found) else text


def show_sweep(page: Page, asked: Asked) -> Shown:
    """The view: the visitor's latest sweep. It is above the run until a run or another model is chosen."""
    job = next(reversed(page.board.of(asked.visitor, kind=SweepJob)), None)
    if job is None:
        return Shown({"there": False}, {})
    view = job.view()
    this, rows = (view.id, view.state, view.rows), view.rows
    label = form.setting_name(view.setting)
    tried = ", ".join(form.setting_shown(view.setting, value) for value in job.sweep.values)
    about = f"{view.name} · {label}: {tried} · {job.spec.training.steps:,} steps each"
    result = Result("The verdict comes after the last run.") if view.active else sweep_result(rows, label)
    stop = deed_button("Stop", "stop_sweep", id="sweep-stop") if view.active else ""
    headline = view.message if view.state == "failed" else result.headline
    runs, model = page.board.of(asked.visitor), asked.selection.get("model")
    before = asked.selection.get("before") if asked.selection.get("sweep") == job.id else model
    newest = '<i class="newest"></i>' * (before == model and (not runs or runs[-1].turn < job.turn))
    said = f"{100 * view.done:.0f} % of all runs{left(view.time_left)}"
    slots = {
        "newest": Slot(newest, lambda: newest),
        "stop": Slot(stop, lambda: stop),
        "bar": Slot(
            view.version if view.active else this, lambda: progress(view, view.done, said) if view.active else ""
        ),
        "headline": Slot(this, lambda: html.escape(headline)),
        "about": Slot(this, lambda: html.escape(about)),
        "number": Slot(this, lambda: html.escape(result.number)),
        "details": Slot(this, lambda: html.escape(result.details)),
        "chart": Slot(this, lambda: _chart(view, label)),
        "table": Slot(this, lambda: _table(view, label)),
    }
    return Shown({"there": True, "sweep": view.id, "before": before}, slots, {"text": view.corpus})


def _chart(view: SweepView, label: str) -> Any:
    values = [form.setting_shown(view.setting, row.value) for row in view.rows]
    if not values:
        return show(None)
    figure = sweep_chart(values, [row.losses for row in view.rows], [row.margin for row in view.rows], label)
    return show(figure, f"Validation loss of each {label.lower()}, with one small point per seed.")


def _table(view: SweepView, label: str) -> str:
    rows = [
        (form.setting_shown(view.setting, row.value), loss_shown(row), ", ".join(f"{loss:.4f}" for loss in row.losses))
        for row in view.rows
    ]
    return theme.table((label, "Validation loss", "By seed"), rows, save="sweep-table") if rows else ""
