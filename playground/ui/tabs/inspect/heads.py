"""Heads: where the chosen head looks and what the prediction loses without it; all heads; another one beside it."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ....figures.attention import head_grid, pattern_map
from ....inspection import Look
from ....inspection.edits import SwitchOff, edits_tap, to_dict
from ....model import trace
from ....words.heads import (
    NUMBERS,
    ROLE_NAMES,
    attends_headline,
    cell_words,
    edited_headline,
    grid_title,
    head_name,
    unedited_words,
    without_words,
)
from ...chart import chart_place, show
from ...clicks import trace_of
from ...panel import Slot, choice, move_button, slot
from . import receipt
from .drawn import MOST_HEADS, cell, clicked_cell, window, window_words
from .selection import At, importance, ranking, within
from .strip import effect_of
from .tested import known

HEIGHT = 340
"""Pixels of a pattern."""

TEMPLATE = f"""<div class="two wide-left"><div class="card stays head-card">
<div class="stack">{slot("headline")}{slot("head-buttons", class_="line tight")}</div>
{chart_place("pattern", height=HEIGHT, save_name="head", clickable=True)}</div>
<section>{receipt.TEMPLATE}
<div class="card"><h3>All heads, the most important first</h3>
{chart_place("grid", height=427, save_name="heads", clickable=True)}</div></section></div>
<details class="fold" data-fold="compare"><summary>Compare with another head or model</summary>
<div class="card stack">{slot("with-choice", class_="line tight")}<div class="two">
<div>{slot("own-headline")}{chart_place("own-pattern", height=HEIGHT, save_name="compared-head")}</div>
<div>{slot("with-headline")}{chart_place("with-pattern", height=HEIGHT, save_name="other-head")}</div>
</div></div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The chosen head and the grid; the receipt and the comparison where they are open."""
    c, look = at.chosen, at.look
    head = (*at.about, c.layer, c.head)
    return {
        "headline": Slot((*head, c.query, c.edits, known(look) is None), lambda: headline(at)),
        "head-buttons": Slot((*head, c.edits, c.why), lambda: buttons(at)),
        "pattern": Slot(
            (*head, c.query, c.key, c.edits), lambda: show(*drawn(look, weights(at), c.query, c.key), aloud=True)
        ),
        "grid": Slot((*head, window(at.look.length, c.query)), lambda: show(*grid(at))),
        **receipt.slots(at),
        **(_compared(at) if c.compare else {}),
    }


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A cell of the pattern opens its receipt; a picture of the grid chooses its head."""
    if click.get("slot") == "pattern":
        return {**clicked_cell(click, window(at.look.length, at.chosen.query)), "why": True}
    if click.get("slot") == "grid":
        drawn = ranking(at.look)[:MOST_HEADS]
        layer, head = drawn[trace_of(click, len(drawn))]
        return {"layer": layer, "head": head, "key": None}
    return None


# ---- the chosen head -------------------------------------------------------------------------------------------------


def headline(at: At) -> str:
    """What the head attends to and what the prediction becomes without it, or that it is off; and the details."""
    look, c = at.look, at.chosen
    off = _off(at) in at.edits
    found = effect_of(look, at.edits if off else [_off(at)], c.query)
    token, now = int(found.before.argmax()), int(found.after.argmax())
    label, before = look.token_label(token), float(found.before[token])
    place = f"{c.query} “{look.tokens[c.query]}”" if c.query < look.length - 1 else ""
    if off:
        said = edited_headline([_off(at)], {look.token_label(t): float(found.after[t]) for t in (now, token)})
        number = unedited_words(label, before, place)
    else:
        row = look.pattern(c.layer)[c.head, c.query].float().cpu().numpy()
        said = attends_headline(c.layer, c.head, look.tokens, row)
        number = without_words(label, before, float(found.after[token]), place)
    details = f"{head_name(*at.owner)} is head {c.head} of layer {c.layer}, both counted from 0."
    if (moved := importance(look)) is not None:
        details += f" Without it the prediction after the last token moves by {moved[at.owner]:.4f} nats."
    if tested := known(look):
        details += f" Tested on {tested.tests.texts} texts, it {ROLE_NAMES[tested.tests.role(*at.owner)]}."
    return (
        f"<h2><bdi>{html.escape(said)}</bdi></h2>"
        f'<p class="num"><bdi>{html.escape(number)}</bdi></p>'
        f"<details><summary>Details</summary><p>{html.escape(details)}</p></details>"
    )


def _off(at: At) -> SwitchOff:
    """The edit that switches the chosen head off."""
    return SwitchOff(at.chosen.layer, "head", at.chosen.head)


def buttons(at: At) -> str:
    """Switch the head off or on again; open the chosen cell's receipt, or bring it into sight."""
    off = to_dict(_off(at))
    listed = [to_dict(edit) for edit in at.edits]
    pressed = str(at.chosen.why).lower()
    why = move_button("Why this weight?", {"why": True}, kind="link", aria_pressed=pressed, data_reveal="receipt")
    if off in listed:
        return move_button("Restore", {"edits": [each for each in listed if each != off]}) + why
    return move_button("Switch it off", {"edits": [*listed, off]}) + why


def weights(at: At) -> np.ndarray:
    """The head's pattern (T, T), with the edits in force."""
    look, c = at.look, at.chosen
    if not at.edits:
        return look.pattern(c.layer)[c.head].float().cpu().numpy()

    tap = edits_tap(at.edits, look.config)
    traced = trace(look.model, torch.tensor([look.ids]), edit=tap, names=["pattern"])
    return traced["pattern", c.layer][0, c.head].float().numpy()


def drawn(look: Look, weights: np.ndarray, query: int, key: int, height: int = HEIGHT) -> tuple[dict[str, Any], str]:
    """A pattern (T, T) of this prompt as a map around a cell, and that cell's weight."""
    part = window(look.length, query)
    tokens = look.tokens[part]
    mark = cell(part, query, key)
    hidden = look.config.causal and not np.triu(weights, 1).any()
    figure = pattern_map(weights[part, part], tokens, causal=hidden, first=part.start, mark=mark, height=height)
    words = cell_words(look.tokens, query, key, float(weights[query, key]))
    return figure, words + window_words(look, part)


# ---- all heads -------------------------------------------------------------------------------------------------------


def grid(at: At) -> tuple[dict[str, Any], str]:
    """All heads as small pictures, in the order of `ranking`, and a sentence if some are left out."""
    look, c = at.look, at.chosen
    heads = ranking(look)
    shown = heads[:MOST_HEADS]
    part = window(look.length, c.query)
    by_layer = {layer: look.pattern(layer)[:, part, part].float().cpu().numpy() for layer in {la for la, _ in shown}}
    patterns = np.stack([by_layer[layer][head] for layer, head in shown])
    moved = importance(look)
    titles = [grid_title(layer, head, None if moved is None else moved[layer, head]) for layer, head in shown]
    chosen = shown.index(at.owner) if at.owner in shown else None
    figure = head_grid(patterns, titles, causal=look.config.causal, chosen=chosen)
    more = f" The first {len(shown)} of {len(heads)} heads." if len(shown) < len(heads) else ""
    return figure, f"{NUMBERS if moved is not None else ''}{more}{window_words(look, part)}".strip()


# ---- beside another one ----------------------------------------------------------------------------------------------


def _compared(at: At) -> dict[str, Slot]:
    other, models = _other(at), at.page.registry.choices(at.visitor)
    both = other.chosen.model != at.chosen.model

    def named(each: At) -> str:
        said = attends_headline(*each.owner, each.look.tokens, weights(each)[each.chosen.query])
        whose = f"{each.look.checkpoint.name}: " if both else ""
        return f"<h3><bdi>{html.escape(whose + said)}</bdi></h3>"

    def picture(each: At) -> dict[str, Any] | None:
        return show(*drawn(each.look, weights(each), each.chosen.query, each.chosen.key), aloud=True)

    found = {"with-choice": Slot((*other.about, *other.owner, models), lambda: _choices(other, dict(models)))}
    for name, each in (("own", at), ("with", other)):
        about = (*each.about, *each.owner, each.chosen.query, each.chosen.key, each.chosen.edits, both)
        found[f"{name}-headline"] = Slot(about, lambda each=each: named(each))
        found[f"{name}-pattern"] = Slot(about, lambda each=each: picture(each))
    return found


def _other(at: At) -> At:
    """The head to compare with: the chosen one, or else the most important other one. Without edits."""
    c, page = at.chosen, at.page
    model = c.with_model if page.registry.has(c.with_model, at.visitor) else c.model
    same = model == c.model
    there = page.shared("inspect.looks").look(at.visitor, model, c.prompt, example=c.subject if same else None)
    layer, head = next((owner for owner in ranking(there) if not same or owner != at.owner), at.owner)
    layer, head = (mine if mine is not None else own for mine, own in ((c.with_layer, layer), (c.with_head, head)))
    chosen = within(c.moved(model=model, layer=layer, head=head, suggested=None, key=None, edits=()), there)
    return replace(at, chosen=chosen, look=there, weights=page.step_of(at.visitor, model))


def _choices(other: At, models: dict[str, str]) -> str:
    layers, heads = (range(n) for n in (other.look.config.n_layers, other.look.config.n_heads))
    return (
        choice("with_model", "Model", {model: name for name, model in models.items()}, other.chosen.model)
        + choice("with_layer", "Layer", {str(n): str(n) for n in layers}, str(other.chosen.layer))
        + choice("with_head", "Head", {str(n): str(n) for n in heads}, str(other.chosen.head))
    )
