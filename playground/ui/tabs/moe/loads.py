"""Load while training: how the experts shared the tokens with balance and without, side by side, on the same scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....figures.routing import load_map
from ....inspection.balance import evenness, load_over_training
from ....inspection.routing import expert_layers, second
from ....service.views import PairView, SideView
from ....words.experts import balance_headline, usage_words
from ...chart import chart_place, show
from ...panel import Slot, choice, deed_button, slot
from .selection import At

TITLE = "Load of each expert while training"
SAME = "The same settings and random start, but no balance loss."
SHOWN = "The result at the top now shows the pair without balance."
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
    there, own = views["load-unbalanced"] is not None, at.job is not None
    begun = {name: side for name, side in sides.items() if _begun(views[name], side)}
    state = layer, [(name, views[name].id, len(side.histories[0].load)) for name, side in begun.items()]
    shown = own and at.job.spec.moe.balance == "none" and SHOWN
    note = shown or ("" if there else SAME if own else TOO_LONG)
    return dict.fromkeys(CHARTS, Slot(None, lambda: None)) | {
        "loads-layer": Slot((names, layer), lambda: choice("layer", "Layer", names, str(layer))),
        "loads-train": Slot((there, own), lambda: BUTTON if own and not there else ""),
        "loads-note": Slot(note, lambda: note),
        "loads-headline": Slot(state, lambda: words(begun, layer)[0]),
        "loads-usage": Slot(state, lambda: words(begun, layer)[1]),
        **{name: Slot(state, lambda name=name: _picture(name, views[name], begun, layer)) for name in begun},
    }


def _begun(view: PairView, side: SideView) -> bool:
    """Whether there is anything to show of the first mixture's load."""
    return bool(side.histories) and not (view.active and not side.histories[0].load)


def _picture(name: str, view: PairView, sides: dict[str, SideView], layer: int) -> dict[str, Any]:
    """The load of a comparison's first mixture."""
    return show(*over_training(sides, name, layer), aloud=True, model=view.name, layer=layer)


def words(sides: dict[str, SideView], layer: int) -> tuple[str, str]:
    """What balance did to a layer's load, once both mixtures have gone equally far; and how many experts are in use."""
    loads = [found for name in CHARTS if name in sides and (found := load_of(sides[name], layer))]
    last, ends = [evenness(load[-1].tolist()) for _, load in loads], {steps[-1] for steps, _ in loads}
    said = balance_headline(*ends, *last) if len(last) == 2 and len(ends) == 1 else ""
    return said, usage_words(*last) if last else ""


def load_of(side: SideView, layer: int) -> tuple[tuple[int, ...], np.ndarray] | None:
    """Steps, and a layer's shares of visits (steps, E) at each, of a side's first mixture; None if not recorded."""
    layers, records = expert_layers(side.config), side.histories[0].load if side.histories else []
    over = load_over_training(records, len(layers), side.config.n_experts)
    return over and (over[0], over[1][:, layers.index(layer)].numpy())


def over_training(sides: dict[str, SideView], name: str, layer: int) -> tuple[dict[str, Any] | None, str]:
    """Chart and sentence of the load in a layer while a mixture trained; no chart if not recorded.

    The charts of all `sides` have one scale, and the first shows it. It ends at twice an equal share or higher.
    """
    loads = {each: over for each, side in sides.items() if (over := load_of(side, layer))}
    if name not in loads:
        return None, "No loads were recorded while this model trained."
    steps, load = loads[name]
    last = evenness(load[-1].tolist())
    most = max(2 / load.shape[1], *(float(shares.max()) for _, shares in loads.values()))
    planned, bar = sides[name].planned_steps, name == next(iter(loads))
    return load_map(steps, load, last.dead, planned, CHARTS[name], most, bar), usage_words(last)
