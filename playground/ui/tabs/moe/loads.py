"""How evenly the experts are used: one layer's load, with balance and, once a button has trained it, without."""

from __future__ import annotations

from typing import Any

from ....figures.routing import load_bars
from ....inspection.balance import evenness, load_over_training
from ....inspection.routing import expert_layers, second
from ....service.views import SideView
from ....words.experts import load_result
from ...chart import chart_place, show
from ...panel import Slot, choice, deed_button, slot
from ...theme import result
from ...under_way import stop_button
from . import verdict
from .selection import At

TITLE = "How evenly are the experts used?"
TOO_LONG = "To see it without balance, first press Train both: the recorded pair takes too long to train again."
BUTTON = deed_button("Train this pair without balance", "train_again")

TEMPLATE = f"""<div class="stack">{slot("loads-result", class_="stack not-in-lessons")}
<div class="line">{slot("loads-layer")}{slot("loads-train", id="train-unbalanced", class_="line")}
{slot("loads-note", tag="p", class_="quiet")}</div>
<div id="moe-load">{chart_place("load", height=240, save_name="load")}</div></div>"""


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold. Raises ValueError if no load was recorded."""
    sides = {balanced: at.by_balance[balanced].sides for balanced in (True, False) if balanced in at.by_balance}
    mixtures = {balanced: each["moe"] for balanced, each in sides.items() if each}
    layers = next((expert_layers(side.config) for side in mixtures.values()), [0])
    layer = at.chosen.layer if at.chosen.layer in layers else second(layers)
    names = {str(each): str(each) for each in layers}
    loads = {balanced: load for balanced, side in mixtures.items() if (load := _load(side, layer))}
    if not loads and at.view and not at.view.active:
        raise ValueError("No load was recorded while this model trained")
    last = {balanced: evenness(shares) for balanced, (_, shares) in loads.items()}
    state = layer, loads
    going = next((view for view in at.by_balance.values() if view.active and view.id != at.view.id), None)
    alike = bool(loads) and len({step for step, _ in loads.values()}) == 1  # both have gone equally far
    train = ""
    if going:
        train = verdict.bar(going) + stop_button(going, type(at.job))
    elif at.job and not at.job.active and False not in loads:
        train = BUTTON

    def draw() -> dict[str, Any] | None:
        figure = load_bars({balanced: shares for balanced, (_, shares) in loads.items()})
        return show(figure, str(load_result(last)), aloud=True, model=at.view.name, layer=layer)

    return {
        "loads-layer": Slot((names, layer), lambda: choice("layer", "Layer", names, str(layer))),
        "loads-train": Slot(train, lambda: train),
        "loads-note": Slot(at.job is None, lambda: TOO_LONG if at.job is None else ""),
        "loads-result": Slot((state, alike), lambda: result(load_result(last)) if alike else ""),
        "load": Slot(state, lambda: draw() if loads else None),
    }


def _load(side: SideView, layer: int) -> tuple[int, list[float]] | None:
    """The last step at which a side's first mixture recorded its load, and a layer's shares of visits (E,) then."""
    layers, records = expert_layers(side.config), side.histories[0].load if side.histories else []
    over = load_over_training(records[-1:], len(layers), side.config.n_experts)
    return over and (over[0][-1], over[1][-1, layers.index(layer)].tolist())
