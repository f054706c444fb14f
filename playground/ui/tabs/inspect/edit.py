"""Change it: edits of one forward pass, the prediction before and after, their cost, and what each head is worth."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import Any

import gradio as gr
import numpy as np
import torch

from ....figures.attention import pattern_map
from ....figures.candidates import next_tokens
from ....figures.parts import describe_removal, describe_sublayers, removal_figure
from ....inspection import Look
from ....inspection.cost import Cost, Effect, PartCosts, edit_cost, effect, removed_part
from ....inspection.edits import (
    Edit,
    EditCell,
    RemoveMask,
    SwapPattern,
    SwitchOff,
    edits_tap,
)
from ....kept import Kept
from ....model import trace
from ....service.limits import EDITS as MOST_EDITS
from ....words.edits import edit_words
from ....words.numbers import percent, signed
from ... import theme
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientDropdown, LenientNumber, SteadyDropdown
from ...page import QUIETLY
from ...widgets.clicks import cell_of
from ...widgets.turns import Question
from .changes import coded, in_force, parsed
from .drawn import window, window_words
from .frame import Frame, Place
from .tested import survey_of, surveyed_before
from .validation import held_out

TITLE = "Change it"
CANDIDATES = 8
CHANGES = {
    "head": "Switch off this head (ablation)",
    "attention": "Switch off this layer's attention",
    "feed-forward": "Switch off this layer's feed-forward",
    "layer": "Switch off this whole layer",
    "uniform": "This head looks at all visible tokens alike",
    "previous": "This head looks only at the token before",
    "set": "Set the weight of this cell to …",
    "scale": "Multiply the weight of this cell by …",
    "mask": "Remove the causal mask everywhere",
    "mask here": "Remove the causal mask in this layer",
}
CELLS = ("set", "scale")


def build(frame: Frame) -> None:
    """What to change on the left, what it does on the right, and below what every part is worth."""
    page = frame.page
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=300, elem_classes="card"):
            gr.HTML(
                theme.heading(
                    "Change the model while it reads",
                    "The change acts on the layer, head and cell chosen above, in this pass only: the stored model is "
                    "never touched.",
                ),
                padding=False,
            )
            what = SteadyDropdown(
                [(title, name) for name, title in CHANGES.items()], value="head", label="Change", filterable=False,
                elem_id="edit-what",
            )  # fmt: skip
            with gr.Row(visible=False) as cell_row:
                value = LenientNumber(0.5, label="New weight", minimum=0, maximum=10, step=0.05, min_width=110)
                keep = gr.Checkbox(
                    True, label="Renormalise", info="The rest of the row shares what is left, so it sums to 1.",
                    min_width=160,
                )  # fmt: skip
            apply = gr.Button("Apply", variant="primary", elem_id="edit-apply")
            edits = LenientDropdown(
                [], value=[], multiselect=True, label="Changes in force", info="Remove one with its ×.",
                elem_id="edit-list",
            )  # fmt: skip
            clear = gr.Button("Undo all", size="md", elem_id="edit-clear")
        with gr.Column(scale=3, min_width=340, elem_classes="card"):
            cards = gr.HTML(padding=False, elem_id="edit-cards")
            bars = Chart(height=300, save_name="before-after", elem_id="edit-bars")
            measure = gr.Button("Measure the cost", elem_id="edit-measure")
            cost = gr.HTML(padding=False, elem_id="edit-cost")
    with gr.Accordion("The head's pattern with these changes", open=False):
        pattern = Chart(height=340, save_name="changed-pattern")
    with gr.Column(elem_classes="card"):
        gr.HTML(
            theme.heading(
                "What each part is worth",
                "The loss rises by this many nats per token when one part is switched off: on unseen text, or on the "
                "prompt itself where none is known. Click a cell to switch that part off above.",
            ),
            padding=False,
        )
        survey = gr.Button("Switch off every head in turn", elem_id="edit-survey")
        with gr.Column(visible=False) as surveyed:
            worth = Chart(height=220, save_name="removal-map", clickable=True, elem_id="edit-map")

    def draw(look: Look, place: Place, chosen: list, *_: Any) -> dict[Any, Any]:
        listed = parsed(chosen)
        found = effect(look.model, torch.tensor([look.ids]), edits_tap(listed, look.config), place.query)
        figure, words = before_after(look, found, listed, place.query)
        part = window(look.length, place.query)
        seen = trace(
            look.model, torch.tensor([look.ids]), edit=edits_tap(listed, look.config), names=["pattern"]
        )["pattern", place.layer][0, place.head]  # fmt: skip
        unmasked = not look.config.causal or any(
            isinstance(e, RemoveMask) and e.layer in (None, place.layer) for e in listed
        )
        return {
            edits: in_force(listed),
            cards: effect_cards(found, listed),
            bars: show(figure, words),
            cost: costs_before(look, listed),
            pattern: show(
                pattern_map(seen[part, part].numpy(), look.tokens[part], causal=not unmasked, first=part.start),
                f"Layer {place.layer} head {place.head} with the changes in force."
                + (" Row sums may differ from 1." if any(not getattr(e, "renormalise", True) for e in listed) else "")
                + window_words(look, part),
            ),
        }

    frame.keeps(edits)
    frame.follow(draw, [edits, cards, bars, cost, pattern], extra=[edits, what, value, keep])
    frame.redraws(edits.input, of=edits)

    def add(look: Look, place: Place, values: dict, event: gr.EventData) -> dict:
        edit = made(values[what], place, values[value], bool(values[keep]))
        listed = [e for e in parsed(values[edits]) if e != edit]
        if len(listed) >= MOST_EDITS:
            raise ValueError(f"{MOST_EDITS} changes at once are enough: remove one first")
        effect(
            look.model, torch.tensor([look.ids]), edits_tap([*listed, edit], look.config)
        )  # says now what cannot be done
        return {edits: [coded(e) for e in (*listed, edit)]}

    frame.redraws(apply.click, add)
    frame.redraws(clear.click, lambda look, place, values, event: {edits: []})

    def shape(name: str) -> tuple:
        number = gr.Number(label="New weight" if name == "set" else "Factor", value=0.5 if name == "set" else 2.0)
        return gr.Row(visible=name in CELLS), number

    what.input(shape, what, [cell_row, value], **QUIETLY)

    def measured(look: Look, place: Place, question: Question) -> Callable[[], dict]:
        listed = parsed(question.values[edits])

        def weigh() -> dict:
            words = cost_words(frame, look, listed)
            return {} if question.stale else {cost: words}  # what is in force by now may be something else

        return weigh

    frame.presses(measure.click, measured, [edits], [cost])

    def surveying(look: Look, place: Place, question: Question) -> Callable[[], dict]:
        return lambda: worth_of(look, survey_of(look, held_out(page, look)))

    def worth_of(look: Look, found: tuple[PartCosts, str] | None) -> dict:
        return {worth: found and show(*worth_picture(*found)), surveyed: gr.Column(visible=found is not None)}

    frame.presses(survey.click, surveying, [], [worth, surveyed])
    # another model's map goes, and one that was made for this model already is there
    frame.follow(lambda look, place: worth_of(look, surveyed_before(look)), [worth, surveyed], per="head")

    def switch(look: Look, place: Place, values: dict, event: gr.EventData) -> dict:
        config = look.config
        layer, column = cell_of(event, rows=config.n_layers, columns=config.n_heads + 2)
        edit = removed_part(layer, column, config.n_heads)
        edit.check(config)
        return {edits: [*dict.fromkeys([*map(coded, parsed(values[edits])), coded(edit)])]}

    frame.redraws(worth.select, switch)


def worth_picture(found: PartCosts, judged: str) -> tuple[dict[str, Any], str]:
    """The map of what every part is worth, and its sentence."""
    H = found.first.shape[1]
    (heads, sublayers), margins = np.split(found.costs.numpy(), [H], axis=1), found.margins.numpy()
    figure = removal_figure(heads, *sublayers.T)
    words = describe_removal(heads, margins[:, :H], found.first.numpy(), found.before)
    words += describe_sublayers(heads, sublayers, margins[:, H:])
    return figure, f"{words} Measured on {found.tokens:,} token{'s' * (found.tokens != 1)} of {judged}."


def made(name: str, place: Place, value: Any, renormalise: bool) -> Edit:
    """The edit that a choice in the list means at this place."""
    if name in ("head", "attention", "feed-forward", "layer"):
        return SwitchOff(place.layer, name, place.head if name == "head" else None)
    if name in ("uniform", "previous"):
        return SwapPattern(place.layer, place.head, name)
    if name in CELLS:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value != value:
            raise ValueError("Type a number first: the new weight, or the factor")
        scale = name == "scale"
        return EditCell(place.layer, place.head, place.query, place.key, float(value), scale, renormalise)
    return RemoveMask(None if name == "mask" else place.layer)


def before_after(look: Look, found: Effect, listed: list[Edit], query: int) -> tuple[dict[str, Any], str]:
    """The likeliest tokens after the chosen one, without and with the changes."""
    best = (found.before + found.after).topk(min(CANDIDATES, look.config.vocab_size)).indices
    labels = [look.token_label(int(token)) for token in best]
    before, after = found.before[best].tolist(), found.after[best].tolist()
    where = f"After {query} “{look.tokens[query]}”"
    if not listed:
        return next_tokens(
            labels, after
        ), f"{where}, the model as it is. Apply a change, and its bars stand beside these."
    first, then = int(found.before.argmax()), int(found.after.argmax())
    before_it, after_it = (percent(chances[first].item()) for chances in (found.before, found.after))
    moved = f"goes from {before_it} to {after_it}" if before_it != after_it else f"stays at {after_it}"
    words = f"“{look.token_label(first)}” {moved}"
    if then != first:
        words += f" and loses the lead to “{look.token_label(then)}” ({percent(found.after[then].item())})"
    figure = next_tokens(labels, after, before, names=("as it is", "with the changes"))
    return figure, f"{where}, {words}."


def effect_cards(found: Effect, listed: list[Edit]) -> str:
    """The changes in words, and how much they do to this prompt."""
    if not listed:
        return theme.notice("Nothing is changed yet.")
    cards = [("this prediction moved by", f"{found.divergence:.4f}", "nats (Kullback–Leibler)")]
    if found.loss_before is not None:
        change = signed(found.loss_after - found.loss_before, 4, plus=True)
        beside = f"{found.loss_before:.4f} before ({change})"
        if abs(found.loss_after - found.loss_before) < 1e-5 < found.divergence:
            beside = "as before: what has moved is the prediction after the last token, and nothing follows to judge it"
        cards.append(("loss on this prompt", f"{found.loss_after:.4f}", beside))
    words = "; ".join(html.escape(edit_words(edit)) for edit in listed)
    return theme.stat_cards(cards) + f'<p class="quiet-line">In force: {words}.</p>'


_costs = Kept(entries=256, megabytes=1)


def cost_words(frame: Frame, look: Look, listed: list[Edit]) -> str:
    """What the changes cost on unseen text, as a notice; measured once."""
    if not listed:
        raise ValueError("Nothing is changed yet: apply a change first")
    judged = held_out(frame.page, look)

    def measure() -> str:
        return said_of(edit_cost(look.model, judged.inputs, judged.targets, listed), judged.words + judged.beside)

    return _costs.get((*listed, look.ids if judged.stand_in else None), measure, owner=look.model)


def costs_before(look: Look, listed: list[Edit]) -> str:
    """The same, if somebody has measured it already; they belong to the model, so another prompt leaves them."""
    keys = ((*listed, None), (*listed, look.ids))
    return next((words for key in keys if (words := _costs.peek(key, owner=look.model))), "")


def said_of(found: Cost, judged: str) -> str:
    """A cost as a notice. The losses have a digit more than the difference, so that these sum up to the eye."""
    margin = f" ± {found.margin:.4f} (a 95 % interval)" if math.isfinite(found.margin) else ""
    words = f"With these changes the loss goes from {found.before:.5f} to {found.after:.5f} nats per token: that "
    if f"{abs(found.difference):.4f}" == "0.0000":
        return theme.notice(f"{words}is no difference to four digits, measured on {judged}.")
    sign = "costs" if found.difference > 0 else "gains"
    words += f"{sign} {abs(found.difference):.4f}{margin}, measured on {judged}."
    if math.isfinite(found.margin) and abs(found.difference) <= found.margin:
        words += " That is no more than the choice of the text could make."
    return theme.notice(words, "warning" if found.difference > found.margin else "info")
