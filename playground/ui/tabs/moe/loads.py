"""Load while training: how the experts shared the tokens with balance and without, side by side, on one scale."""

from __future__ import annotations

from typing import Any

from ....figures.routing import load_map
from ....inspection.balance import evenness, load_over_training
from ....inspection.routing import expert_layers, second
from ....service.views import PairView, SideView
from ....words.experts import training_load_words
from ...chart import chart_place, show
from ...panel import Slot, choice, slot
from .selection import At

TITLE = "Load of each expert while training"
CHARTS = {"load-balanced": "With balance", "load-unbalanced": "Without balance"}


def _chart(name: str) -> str:
    return f'<div id="{name}"><h3>{CHARTS[name]}</h3>{chart_place(name, height=250, save_name=name)}</div>'


TEMPLATE = f"""<div class="stack"><div class="line">{slot("loads-layer")}
<button type="button" class="ghost" id="train-unbalanced" data-do="train_again"
data-with='{{"balance": "none"}}'>Train this pair without balance</button>
<p class="quiet">The same settings and random start, but no balance loss.</p></div>
<div class="two">{"".join(map(_chart, CHARTS))}</div></div>"""


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold; a picture grows while its model trains."""
    views = {name: at.by_balance.get(name == "load-balanced") for name in CHARTS}
    sides = {name: view.sides["moe"] for name, view in views.items() if view and view.sides}
    layers = next((expert_layers(side.config) for side in sides.values()), [0])
    layer = at.chosen.layer if at.chosen.layer in layers else second(layers)
    names = {str(each): str(each) for each in layers}
    return {
        "loads-layer": Slot((names, layer), lambda: choice("layer", "Layer", names, str(layer))),
        **{name: _picture(views[name], sides.get(name), layer) for name in CHARTS},
    }


def _picture(view: PairView | None, side: SideView | None, layer: int) -> Slot:
    """The load of a comparison's first mixture; nothing before there is any."""
    if side is None or not side.histories or (view.active and not side.histories[0].load):
        return Slot(None, lambda: None)
    about = (view.id, len(side.histories[0].load), layer)
    return Slot(about, lambda: show(*over_training(side, layer), model=view.name, layer=layer))


def over_training(side: SideView, layer: int) -> tuple[dict[str, Any] | None, str]:
    """Chart and sentence of the load in a layer while a mixture trained; no chart if not recorded."""
    layers = expert_layers(side.config)
    over = load_over_training(side.histories[0].load, len(layers), side.config.n_experts)
    if over is None:
        return None, "No loads were recorded while this model trained."
    steps, load = over[0], over[1][:, layers.index(layer)].numpy()
    first, last = (evenness(load[moment].tolist()) for moment in (0, -1))
    began = (steps[0], first.entropy) if len(steps) > 1 else None
    return load_map(steps, load, last.dead), training_load_words(layer, steps[-1], last, began)
