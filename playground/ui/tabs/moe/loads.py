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
from .selection import At

TITLE = "Load of each expert while training"
SAME = "The same settings and random start, but no balance loss."
TOO_LONG = "First press Train both: the recorded pair takes too long to train again."
BUTTON = deed_button("Train this pair without balance", "train_again", data_with='{"balance": "none"}')
CHARTS = {"load-balanced": "With balance", "load-unbalanced": "Without balance"}


TEMPLATE = f"""<div class="stack">{slot("loads-headline", tag="h3", class_="not-in-lessons")}
{slot("loads-usage", tag="p", class_="num not-in-lessons")}
<div class="line">{slot("loads-layer")}{slot("loads-train", id="train-unbalanced")}
{slot("loads-note", tag="p", class_="quiet")}</div><div class="two">
{"".join(f'<div id="{name}">{chart_place(name, height=250, save_name=name)}</div>' for name in CHARTS)}</div></div>"""


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold; a picture grows while its model trains."""
    views = {name: at.by_balance.get(name == "load-balanced") for name in CHARTS}
    sides = {name: view.sides["moe"] for name, view in views.items() if view and view.sides}
    layers = next((expert_layers(side.config) for side in sides.values()), [0])
    layer = at.chosen.layer if at.chosen.layer in layers else second(layers)
    names = {str(each): str(each) for each in layers}
    begun = {name: side for name, side in sides.items() if _begun(views[name], side)}
    state = layer, [(name, views[name].id, len(side.histories[0].load)) for name, side in begun.items()]
    loads = {name: over for name, side in begun.items() if (over := load_of(side, layer))}
    last = {name: evenness(load[-1].tolist()) for name, (_, load) in loads.items()}
    ends = {steps[-1] for steps, _ in loads.values()}
    alike = len(loads) == 2 and len(ends) == 1  # both have gone equally far
    button = _button(at, views)
    note = "" if views["load-unbalanced"] else SAME if at.job else TOO_LONG

    def drawn(name: str) -> dict[str, Any]:
        if name not in loads:
            return show(None, "No loads were recorded while this model trained.")
        bar, planned = name == next(iter(loads)), sides[name].planned_steps
        figure = load_map(*loads[name], last[name].dead, planned, CHARTS[name], bar)
        return show(figure, usage_words(last[name]), aloud=True, model=views[name].name, layer=layer)

    return dict.fromkeys(CHARTS, Slot(None, lambda: None)) | {
        "loads-layer": Slot((names, layer), lambda: choice("layer", "Layer", names, str(layer))),
        "loads-train": Slot(button, lambda: button),
        "loads-note": Slot(note, lambda: note),
        "loads-headline": Slot(state, lambda: balance_headline(*ends, *last.values()) if alike else ""),
        "loads-usage": Slot(state, lambda: usage_words(*last.values()) if last else ""),
        **{name: Slot(state, lambda name=name: drawn(name)) for name in begun},
    }


def _button(at: At, views: dict[str, PairView | None]) -> str:
    """The button that trains the pair without balance, or shows the balanced pair again once that is done."""
    if at.job is None or views["load-unbalanced"] is None:
        return BUTTON if at.job else ""
    if at.job.active or at.job.spec.moe.balance != "none" or views["load-balanced"] is None:
        return ""
    first = [side.model_id for side in views["load-balanced"].sides.values()]
    return move_button("Show the first pair again", {"pair": " ".join(first)}) if first and all(first) else ""


def _begun(view: PairView, side: SideView) -> bool:
    """Whether there is anything to show of the first mixture's load."""
    return bool(side.histories) and not (view.active and not side.histories[0].load)


def load_of(side: SideView, layer: int) -> tuple[tuple[int, ...], np.ndarray] | None:
    """Steps, and a layer's shares of visits (steps, E) at each, of a side's first mixture; None if not recorded."""
    layers, records = expert_layers(side.config), side.histories[0].load if side.histories else []
    over = load_over_training(records, len(layers), side.config.n_experts)
    return over and (over[0], over[1][:, layers.index(layer)].numpy())
