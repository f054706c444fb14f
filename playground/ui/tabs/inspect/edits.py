"""Edits of the forward pass: what they do to the prediction and the loss; and what each part is worth."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ....figures.candidates import next_tokens
from ....figures.parts import part_map
from ....inspection.cost import Cost, Effect, PartCosts, edit_cost, removed_part
from ....inspection.edits import Edit, EditCell, RemoveMask, SwapPattern, SwitchOff, to_dict
from ....kept import Kept
from ....service.limits import EDITS as MOST_EDITS
from ....words.inspect import edit_cost_words
from ....words.numbers import signed
from ....words.pictures import expected, worth_words
from ....words.result import Result
from ... import theme
from ...chart import chart_place, show
from ...clicks import cell_of
from ...panel import Slot, choice, move_button, slot
from .pairs import with_headline
from .selection import At
from .strip import edited
from .tested import survey_of
from .validation import held_out

CANDIDATES = 8
CHANGES = {
    "head": "Switch off this head (ablation)",
    "attention": "Switch off this layer's attention",
    "feed-forward": "Switch off this layer's MLP",
    "layer": "Switch off this whole layer",
    "uniform": "This head attends to all visible tokens equally",
    "previous": "This head attends only to the token before",
    "set": "Set the weight of this cell",
    "scale": "Multiply the weight of this cell",
    "mask": "Remove the causal mask everywhere",
    "mask here": "Remove the causal mask in this layer",
}
CELLS = ("set", "scale")

TEMPLATE = f"""<details class="fold" data-fold="change"><summary>Edit the model while it reads</summary>
<div class="two"><div class="card stack">{choice("edit", "Change", CHANGES)}{slot("edit-cell")}
{slot("edit-apply", class_="line tight")}
<p class="quiet">An edit lasts for one forward pass. The stored model does not change.</p>
{slot("edit-cards")}{slot("edit-cost")}</div>
<div class="card stack"><h3>Likeliest next tokens</h3>
{chart_place("edit-bars", height=300, save_name="before-after")}</div></div></details>
<details class="fold" data-fold="worth"><summary>How much each part matters</summary><div class="card">
{slot("worth-headline")}{chart_place("worth", height=220, save_name="removal-map", clickable=True)}</div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The slots of the folds that are open."""
    c, shown = at.chosen, {}
    if c.change:
        place = (*at.about, c.layer, c.head, c.query, c.key)
        shown = {
            "edit-cell": Slot((c.edit,), lambda: cell_fields(c.edit)),
            "edit-apply": Slot((*place, c.edits, c.edit, c.edit_value, c.renormalise), lambda: apply_button(at)),
            "edit-cards": Slot((*at.about, c.edits, c.query), lambda: effect_cards(edited(at, c.query), at.edits)),
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


def cell_fields(kind: str) -> str:
    """The number that an edit of a single weight needs."""
    if kind not in CELLS:
        return ""
    label = "New weight" if kind == "set" else "Factor"
    return (
        f'<label class="field-label">{label}<input type="number" name="edit_value" min="0" max="10" step="0.05">'
        "</label>"
        '<label class="check"><input type="checkbox" name="renormalise"> Scale the rest of the row so that it sums to 1'
        "</label>"
    )


def apply_button(at: At) -> str:
    """The button that puts the chosen edit in force; a ValueError where it cannot be."""
    edit = made(at)
    listed = [each for each in at.edits if each != edit]
    if len(listed) >= MOST_EDITS:
        raise ValueError(f"You can have at most {MOST_EDITS} edits. Restore one first")
    edit.check(at.look.config)
    return move_button("Apply", {"edits": [to_dict(each) for each in (*listed, edit)]}, kind="primary")


def made(at: At) -> Edit:
    """The edit that the form describes."""
    c = at.chosen
    if c.edit in ("head", "attention", "feed-forward", "layer"):
        return SwitchOff(c.layer, c.edit, c.head if c.edit == "head" else None)
    if c.edit in ("uniform", "previous"):
        return SwapPattern(c.layer, c.head, c.edit)
    if c.edit in CELLS:
        return EditCell(c.layer, c.head, c.query, c.key, c.edit_value, c.edit == "scale", c.renormalise)
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
    look, query, found = at.look, at.chosen.query, edited(at, at.chosen.query)
    best = (found.before + found.after).topk(min(CANDIDATES, look.config.vocab_size)).indices
    labels = [look.token_label(int(token)) for token in best]
    before, after = found.before[best].tolist(), found.after[best].tolist()
    place = f"After {query} “{look.tokens[query]}”."
    if not at.edits:
        return next_tokens(labels, after), f"{place} {expected(labels, after)}"
    names = ("unedited", "edited")
    words = f"{place} {expected(labels, after, before, names)}"
    return next_tokens(labels, after, before, names=names), words


def effect_cards(found: Effect, listed: list[Edit]) -> str:
    """How much the edits do to this prompt; nothing without any."""
    if not listed:
        return ""
    cards = [("the prediction moved by", f"{found.divergence:.4f}", "nats (Kullback–Leibler)")]
    if found.loss_before is not None:
        change = signed(found.loss_after - found.loss_before, 4, plus=True)
        beside = f"{found.loss_before:.4f} before ({change})"
        if abs(found.loss_after - found.loss_before) < 1e-5 < found.divergence:
            beside = "unchanged: only the prediction after the last token moved, and nothing follows it"
        cards.append(("loss on this prompt", f"{found.loss_after:.4f}", beside))
    return theme.stat_cards(cards)


_costs = Kept(entries=256, megabytes=1)


def cost_words(at: At) -> str:
    """What the edits cost on held-out text, as a notice; measured once."""
    if not at.edits:
        return ""
    judged = held_out(at.page, at.look)

    def measure() -> str:
        found = edit_cost(at.look.model, judged.inputs, judged.targets, at.edits)
        return said_of(found, judged.words + judged.beside)

    key = json.dumps(at.chosen.edits, sort_keys=True), at.look.ids if judged.stand_in else None
    return _costs.get(key, measure, owner=at.look.model)


def said_of(found: Cost, judged: str) -> str:
    """A cost as a notice."""
    words = edit_cost_words(found.before, found.after, found.margin, judged)
    return theme.notice(words, "warning" if found.difference > found.margin else "info")
