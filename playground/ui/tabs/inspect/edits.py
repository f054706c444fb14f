"""Edits of the forward pass: what they do to the prediction and the loss; and what each part is worth."""

from __future__ import annotations

import html
import json
import math
from typing import Any

import numpy as np

from ....figures.candidates import next_tokens
from ....figures.parts import part_map
from ....inspection.cost import PartCosts, edit_cost, removed_part
from ....inspection.edits import Edit, EditCell, RemoveMask, SwapPattern, SwitchOff, to_dict
from ....kept import Kept
from ....service.limits import EDITS as MOST_EDITS
from ....words.heads import edited_headline
from ....words.inspect import edit_cost_words
from ....words.pictures import expected, worth_words
from ....words.result import Result
from ... import theme
from ...chart import chart_place, show
from ...clicks import cell_of
from ...panel import Slot, choice, move_button, slot
from .pairs import with_headline
from .selection import At
from .strip import effect_of
from .tested import survey_of
from .validation import held_out

CANDIDATES = 8
CHANGES = {
    "head": "Switch off head {head} (ablation)",
    "attention": "Switch off layer {layer}'s attention",
    "feed-forward": "Switch off layer {layer}'s MLP",
    "layer": "Switch off all of layer {layer}",
    "uniform": "Head {head} attends to all visible tokens equally",
    "previous": "Head {head} attends only to the token before",
    "set": "Set a weight of head {head}, from token {query} to {key}",
    "mask": "Remove the causal mask everywhere",
    "mask here": "Remove the causal mask in layer {layer}",
}

TEMPLATE = f"""<details class="fold" data-fold="change"><summary>Edit the model while it reads</summary>
<div class="two"><div class="card stack">{slot("edit-choice")}
<label class="field-label" data-if="edit:set">New weight<input type="number" name="edit_value" min="0" max="1"
step="0.05"></label>
{slot("edit-apply", class_="line tight")}
<p class="quiet">Edits last until you press Restore. The stored model does not change.</p></div>
<div class="card stack">{slot("edit-headline", class_="line")}
{chart_place("edit-bars", height=300, save_name="before-after")}{slot("edit-cost")}</div></div></details>
<details class="fold" data-fold="worth"><summary>How much each part matters</summary><div class="card">
{slot("worth-headline")}{chart_place("worth", height=220, save_name="removal-map", clickable=True)}</div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The slots of the folds that are open."""
    c, shown = at.chosen, {}
    if c.change:
        place = (*at.about, c.layer, c.head, c.query, c.key)
        shown = {
            "edit-choice": Slot(place, lambda: choice("edit", "Change", changes(at))),
            "edit-apply": Slot((*place, c.edits, c.edit, c.edit_value), lambda: apply_button(at)),
            "edit-headline": Slot((*at.about, c.edits, c.query), lambda: headline(at)),
            "edit-bars": Slot((*at.about, c.edits, c.query), lambda: show(*before_after(at))),
            "edit-cost": Slot((*at.about, c.edits), lambda: cost_words(at), slow=True),
        }
    if c.worth:
        shown |= with_headline(
            "worth", at.about, lambda: worth_picture(*survey_of(at.look, held_out(at.page, at.look)))
        )
    return shown


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A cell of the map switches its part off."""
    if click.get("slot") != "worth":
        return None
    config = at.look.config
    layer, column = cell_of(click, rows=config.n_layers, columns=config.n_heads + 2)
    edit = removed_part(layer, column, config.n_heads)
    edit.check(config)
    return {"edits": tuple(map(to_dict, dict.fromkeys([*at.edits, edit])))}


def changes(at: At) -> dict[str, str]:
    """The edits to choose from, by the names of the head, the layer and the tokens that they change."""
    c = at.chosen
    names = {"head": f"{c.layer}.{c.head}", "layer": c.layer, "query": c.query, "key": c.key}
    return {name: words.format_map(names) for name, words in CHANGES.items()}


def apply_button(at: At) -> str:
    """The button that puts the chosen edit in force; a ValueError where it cannot be."""
    edit = made(at)
    listed = [each for each in at.edits if each != edit]
    if len(listed) >= MOST_EDITS:
        raise ValueError(f"You can have at most {MOST_EDITS} edits. Undo one first")
    edit.check(at.look.config)
    return move_button("Apply", {"edits": [to_dict(each) for each in (*listed, edit)]}, kind="primary")


def made(at: At) -> Edit:
    """The edit that the form describes."""
    c = at.chosen
    if c.edit in ("head", "attention", "feed-forward", "layer"):
        return SwitchOff(c.layer, c.edit, c.head if c.edit == "head" else None)
    if c.edit in ("uniform", "previous"):
        return SwapPattern(c.layer, c.head, c.edit)
    if c.edit == "set":
        return EditCell(c.layer, c.head, c.query, c.key, c.edit_value)
    return RemoveMask(None if c.edit == "mask" else c.layer)


def worth_picture(found: PartCosts, judged: str) -> tuple[dict[str, Any], Result]:
    """The map of what every part is worth, and its sentence."""
    costs, margins, first = (each.numpy() for each in (found.costs, found.margins, found.first))
    L, H = first.shape
    columns = [*(f"head {head}" for head in range(H)), "attention", "MLP"]
    hover = "without it: %{customdata:+.5f} nats per token"
    figure = part_map(costs, columns, hover, margins=margins if np.isfinite(margins).all() else None)
    names = [[*(f"head {i}.{head}" for head in range(H)), *(f"layer {i}'s {n}" for n in columns[H:])] for i in range(L)]
    judged = f"{found.tokens:,} token{'s' * (found.tokens != 1)} of {judged}"
    ties = np.pad(first, ((0, 0), (0, 2)))
    return figure, worth_words(costs, margins, ties, found.before, judged, names)


def before_after(at: At) -> tuple[dict[str, Any], str]:
    """The likeliest tokens after the chosen one, without and with the edits."""
    look, query = at.look, at.chosen.query
    found = effect_of(look, at.edits, query)
    best = (found.before + found.after).topk(min(CANDIDATES, look.config.vocab_size)).indices
    labels = [look.token_label(int(token)) for token in best]
    before, after = found.before[best].tolist(), found.after[best].tolist()
    place = f"After token {query} “{look.tokens[query]}”."
    if not at.edits:
        return next_tokens(labels, after), f"{place} {expected(labels, after)}"
    words = f"{place} {expected(labels, after, before, ('without the edits', 'with them'))}"
    return next_tokens(labels, after, before, names=("unedited", "edited")), words


def headline(at: At) -> str:
    """What comes next with the edits, and a button that takes all of them back."""
    if not at.edits:
        return "<h3>Likeliest next tokens</h3>"
    look, found = at.look, effect_of(at.look, at.edits, at.chosen.query)
    likeliest = dict.fromkeys((int(found.after.argmax()), int(found.before.argmax())))
    said = edited_headline(at.edits, {look.token_label(token): float(found.after[token]) for token in likeliest})
    return f"<h3><bdi>{html.escape(said)}</bdi></h3>{move_button('Restore all', {'edits': []})}"


_costs = Kept(entries=256, megabytes=1)


def cost_words(at: At) -> str:
    """What the edits cost on held-out text, folded; on this prompt if no other text has the edited cells."""
    if not at.edits:
        return ""
    judged, here = held_out(at.page, at.look), effect_of(at.look, at.edits, at.look.length - 1)

    def measure() -> str:
        found = edit_cost(at.look.model, judged.inputs, judged.targets, at.edits)
        return edit_cost_words(found.before, found.after, found.margin, judged.words)

    if any(isinstance(edit, EditCell) for edit in at.edits):
        if here.loss_before is None:
            return ""
        words = edit_cost_words(here.loss_before, here.loss_after, math.inf, "this prompt")
    else:
        key = json.dumps(at.chosen.edits, sort_keys=True), at.look.ids if judged.stand_in else None
        words = _costs.get(key, measure, owner=at.look.model)
    return f"<details><summary>Details</summary>{theme.quiet(words)}</details>"
