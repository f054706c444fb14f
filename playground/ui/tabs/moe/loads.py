"""Load while training: how the experts shared the tokens with balance and without, side by side, on one scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....figures.routing import load_map
from ....inspection.balance import evenness, load_over_training
from ....inspection.routing import expert_layers, second
from ....service.views import PairView, SideView
from ....words.experts import balance_headline, usage_words
from ...chart import chart_place, show
from ...panel import Slot, choice, deed_button, move_button, slot
from ...under_way import stop_button
from . import verdict
from .selection import At

TITLE = "Load of each expert while training"
SAME = "The same settings and random start, but no balance loss."
TOO_LONG = "First press Train both: the recorded pair takes too long to train again."
BUTTON = deed_button("Train this pair without balance", "train_again", data_with='{"balance": "none"}')
CHARTS = ("load-balanced", "load-unbalanced")

TEMPLATE = f"""<div class="stack">{slot("loads-headline", tag="h3", class_="not-in-lessons")}
<div class="line">{slot("loads-layer")}{slot("loads-train", id="train-unbalanced", class_="line")}
{slot("loads-note", tag="p", class_="quiet")}</div><div class="two">
{"".join(f'<div id="{name}">{chart_place(name, height=250, save_name=name)}</div>' for name in CHARTS)}</div></div>"""


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold; a picture grows while its model trains, the second beside the whole first."""
    views = {name: view for name in CHARTS if (view := at.by_balance.get(name == "load-balanced"))}
    sides = {name: view.sides["moe"] for name, view in views.items() if view.sides}
    layers = next((expert_layers(side.config) for side in sides.values()), [0])
    layer = at.chosen.layer if at.chosen.layer in layers else second(layers)
    names = {str(each): str(each) for each in layers}
    loads = {name: over for name, side in sides.items() if (over := load_of(side, layer))}
    longest, load = max(loads.values(), key=lambda over: len(over[0]), default=((), None))
    drawn = [name for name, view in views.items() if (len(longest) > 1 if view.active else view.sides)]
    state = layer, len(longest), [(views[name].id, views[name].active, len(loads.get(name, [()])[0])) for name in drawn]
    last = {name: evenness(load[-1].tolist()) for name, (_, load) in loads.items()}
    ends = {steps[-1] for steps, _ in loads.values()}
    alike = len(loads) == 2 and len(ends) == 1  # both have gone equally far
    button = _button(at, views)
    note = TOO_LONG if at.job is None else SAME if button == BUTTON else ""

    def draw(name: str) -> dict[str, Any]:
        if name not in loads and not views[name].active:
            return show(None, "No loads were recorded while this model trained.")
        end, (_, own) = last.get(name), loads.get(name, ((), load[:0]))
        title, planned = usage_words(end, name == "load-balanced"), max(side.planned_steps for side in sides.values())
        figure = load_map(longest, own, end.dead if end else (), planned, title, name == next(iter(loads)))
        return show(figure, title, aloud=True, model=views[name].name, layer=layer)

    return dict.fromkeys(CHARTS, Slot(None, lambda: None)) | {
        "loads-layer": Slot((names, layer), lambda: choice("layer", "Layer", names, str(layer))),
        "loads-train": Slot(button, lambda: button),
        "loads-note": Slot(note, lambda: note),
        "loads-headline": Slot(state, lambda: balance_headline(*ends, *last.values()) if alike else ""),
        **{name: Slot(state, lambda name=name: draw(name)) for name in drawn},
    }


def _button(at: At, views: dict[str, PairView]) -> str:
    """The button that trains the pair without balance; Stop while it trains; later, the way back to the first pair."""
    if at.job and at.job.active:
        return verdict.bar(at.view) + stop_button(at.view, type(at.job))
    if at.job is None or "load-unbalanced" not in views:
        return BUTTON if at.job else ""
    if at.job.spec.moe.balance != "none" or "load-balanced" not in views:
        return ""
    first = [side.model_id for side in views["load-balanced"].sides.values()]
    return move_button("Show the first pair again", {"pair": " ".join(first)}) if first and all(first) else ""


def load_of(side: SideView, layer: int) -> tuple[tuple[int, ...], np.ndarray] | None:
    """Steps, and a layer's shares of visits (steps, E) at each, of a side's first mixture; None if not recorded."""
    layers, records = expert_layers(side.config), side.histories[0].load if side.histories else []
    over = load_over_training(records, len(layers), side.config.n_experts)
    return over and (over[0], over[1][:, layers.index(layer)].numpy())
