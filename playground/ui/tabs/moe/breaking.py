"""Break it: experts switched off; what each expert is worth."""

from __future__ import annotations

import html
from typing import Any

import torch

from ....data import visible
from ....figures.candidates import next_tokens
from ....figures.parts import part_map
from ....inspection.cost import effect, expert_costs
from ....inspection.edits import SwitchOffExperts, edits_tap
from ....inspection.routing import expert_layers, routing_of
from ....kept import Kept
from ....storage import Checkpoint
from ....training.losses import window_losses
from ....words.experts import broken_result
from ....words.pictures import expected, worth_words
from ...chart import chart_place, show
from ...clicks import cell_of
from ...panel import Slot, choice, move_button, slot
from ...prompts import read_prompt
from ...theme import notice, result
from .selection import PROMPT, At
from .texts import text_for

TITLE = "Break it"
CANDIDATES = 8
LOSS_WINDOWS = 24
"""The number of windows for every loss here, so that a model has only one loss."""
TEMPLATE = f"""<div class="stack">{slot("breaking-note")}
<div class="line">{PROMPT}{slot("breaking-layer")}{slot("breaking-experts", class_="line tight", data_arrows="")}</div>
{slot("breaking-visited")}{slot("breaking-result", id="breaking-result")}
{chart_place("breaking-next", height=340, save_name="next-tokens")}
<details data-fold="worth"><summary>What is each expert worth?</summary>
{chart_place("expert-costs", height=220, save_name="expert-costs", clickable=True)}</details></div>"""

_kept = Kept(entries=64, megabytes=4)


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold. Raises ValueError if the prompt cannot be read."""
    c, checkpoint = at.chosen, at.mixture
    layers = expert_layers(checkpoint.config)
    ids, notes = read_prompt(at.page, checkpoint, c.prompt or "")
    E, K = checkpoint.config.n_experts, checkpoint.config.experts_per_token
    ids = ids[-checkpoint.config.context_length :]
    routed = routing_of(checkpoint.model, torch.tensor([ids]))
    i = routed.layers.index(c.layer)
    visited, weights = (each[i, 0, -1].tolist() for each in (routed.experts, routed.weights))  # by the last token
    chosen = tuple(visited[:1]) if c.off is None else c.off
    if K == E:
        notes = [*notes, f"Every token uses all {E} experts. If you switch one off, no other replaces it."]
    here = (*at.about, tuple(ids), c.layer)
    edited = (*here, chosen)
    names = {str(layer): str(layer) for layer in layers}

    def changed() -> Changed:
        return _kept.get(("changed", *edited), lambda: change(at, checkpoint, ids, chosen), owner=checkpoint.model)

    return {
        "breaking-note": Slot(notes, lambda: "".join(notice(n) for n in notes)),
        "breaking-layer": Slot((layers, c.layer), lambda: choice("layer", "Layer", names, str(c.layer))),
        "breaking-experts": Slot((E, chosen), lambda: "Experts " + "".join(_toggle(e, chosen) for e in range(E))),
        "breaking-visited": Slot(here, lambda: _way_of_last(labels_of(checkpoint, ids)[-1], c.layer, visited, weights)),
        "breaking-result": Slot(edited, lambda: changed()[0], slow=True),
        "breaking-next": Slot(edited, lambda: changed()[1], slow=True),
        "expert-costs": Slot((*at.about, c.worth), lambda: worth(at, checkpoint) if c.worth else None, slow=c.worth),
    }


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any]:
    """Select the expert whose cell in the cost map was clicked."""
    config = at.mixture.config
    layers = expert_layers(config)
    row, column = cell_of(click, rows=len(layers), columns=config.n_experts)
    return {"layer": layers[row], "off": (column,)}


def _toggle(expert: int, chosen: tuple[int, ...]) -> str:
    """A button that adds an expert to the edit, or removes it."""
    into = [e for e in chosen if e != expert] if expert in chosen else sorted({*chosen, expert})
    pressed = str(expert in chosen).lower()
    return move_button(str(expert), {"off": into}, kind="chip expert-toggle", aria_pressed=pressed)


Changed = tuple[str, dict[str, Any] | None]
"""What it does to the loss, and the next token's picture."""


def change(at: At, checkpoint: Checkpoint, ids: list[int], chosen: tuple[int, ...]) -> Changed:
    """What switching experts off does to the next token and to the loss. Raises ValueError if too few would be left."""
    model, config = checkpoint.model, checkpoint.config
    replaced = config.experts_per_token < config.n_experts  # or else no other can take over
    tap = edits_tap([SwitchOffExperts(at.chosen.layer, chosen, replaced=replaced)], config)
    found = effect(model, torch.tensor([ids]), tap)
    top = torch.cat([found.after.topk(CANDIDATES // 2).indices, found.before.topk(CANDIDATES).indices])
    kept = sorted(dict.fromkeys(top.tolist()), key=lambda t: -found.before[t].item())[:CANDIDATES]
    labels = labels_of(checkpoint, kept)
    after, before = found.after[kept].tolist(), found.before[kept].tolist()
    picture = show(
        next_tokens(labels, after, before, names=("unchanged", "changed")),
        expected(labels, after, before, ("without the change", "with it")),
    )
    windows, what = text_for(at.page, checkpoint)
    windows = windows[:LOSS_WINDOWS]
    plain = window_losses(model, windows[:, :-1], windows[:, 1:]).mean
    changed = window_losses(model, windows[:, :-1], windows[:, 1:], tap=tap).mean
    return result(broken_result(plain, changed, what)), picture


def worth(at: At, checkpoint: Checkpoint) -> dict[str, Any] | None:
    """The map of what every expert is worth."""
    windows, what = text_for(at.page, checkpoint)
    x, y = windows[:LOSS_WINDOWS, :-1], windows[:LOSS_WINDOWS, 1:]
    model, layers = checkpoint.model, expert_layers(checkpoint.config)
    found = _kept.get(("costs", what), lambda: expert_costs(model, x, y), owner=model)
    costs, margins, experts = found.costs.numpy(), found.margins.numpy(), range(checkpoint.config.n_experts)
    hover = "without it: %{customdata:+.5f} nats per token"
    figure = part_map(costs, [f"expert {e}" for e in experts], hover, margins=margins, layers=layers)
    names = [[f"expert {e} of layer {layer}" for e in experts] for layer in layers]
    judged = f"{y.numel():,} tokens of {what}"
    return show(figure, str(worth_words(costs, margins, found.first.numpy(), found.before, judged, names)))


def labels_of(checkpoint: Checkpoint, ids: list[int]) -> list[str]:
    """Tokens as visible text."""
    return [visible(checkpoint.tokenizer.token_text(t)) for t in ids]


def _way_of_last(token: str, layer: int, experts: list[int], weights: list[float]) -> str:
    """Where the prompt's last token goes by itself, which is what to break."""
    visits = " and ".join(f"{e} ({w:.2f})" for e, w in zip(experts, weights))
    which = "expert" if len(experts) == 1 else "experts"
    last = f"“<bdi>{html.escape(token)}</bdi>”"
    return f'<p class="quiet">The last token {last} goes to {which} {visits} in layer {layer}.</p>'
