"""The Inspect tab: one panel. One prompt, every number that a model makes of it, explained, proved, edited.

selection.py   what is selected, and what a view gets of it (`At`); looks.py: what models made of the latest prompts
strip.py       the prompt's tokens, shaded by where the chosen one looks; the next token; the edits in force
steps.py       step by step from tokens to probabilities, with pictures.py; lens.py: what each layer would predict
heads.py       one head, all heads, a second one beside it; receipt.py: why a weight is what it is
edits.py       edits of the forward pass and their effect; roles.py: what heads do, tested.py tests them on many texts
pairs.py       two prompts that differ in one word; what carries the difference: patch.py, steer.py, circuits.py
training.py    one optimizer step; moments.py: the same prompt through training
cost.py        parameters and arithmetic by part; kv_cache.py: what the KV cache saves

A view is a module with `TEMPLATE` (fixed HTML), `slots(at)` and, where charts can be clicked, `clicked(at, click)`,
which returns the fields of the selection that a click changes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ....data.tokenizers import in_known_case
from ....inspection.example import EXAMPLES
from ....links import LinkError
from ... import theme
from ...links import carried_slot
from ...page import Page
from ...panel import Asked, Shown, Slot, chip, choice, slot, switch
from ...quoted import model_facts
from . import circuits, cost, edits, heads, patch, roles, steer, steps, strip, training
from .beginnings import prompts
from .looks import Looks
from .selection import MODEL, VIEWS, At, Selection, parsed, within

TITLE = "Inspect QKV"
SUBJECTS = {MODEL: "Chosen model", **{name: example.title for name, example in EXAMPLES.items()}}
MODULES = {
    "steps": (steps,),
    "heads": (heads, roles, edits, patch, steer, circuits),
    "training": (training,),
    "cost": (cost,),
}
"""The modules that draw each view."""
WITHIN = {"steps": steps.within, "training": training.within}
"""What holds a view's own fields to what the model has."""
ADDRESS = (
    "view step subject prompt typed layer head cell edits strip training patch steer circuit other part path donor kept"
)
"""The part of the selection that is in the page's address."""

_FRAME = f"""<div class="card inspect-prompt">
<div class="line"><label class="grow"><span class="sr-only">Prompt</span>
<textarea rows="1" name="prompt" data-resets="query key kept" dir="auto" autocomplete="off" spellcheck="false"
placeholder="Type a prompt"></textarea></label>
{slot("next", class_="next")}</div>
<div class="line tight ideas"><div class="offers grow">{slot("edits-in-force")}
{slot("ideas", class_="chips", data_arrows="")}</div>
{choice("subject", "Look into", SUBJECTS)}<button type="button" class="ghost" data-copy-link>Copy link</button></div>
{slot("edits-seen", tag="p", class_="quiet")}{slot("carried")}
{strip.TEMPLATE}
{slot("problem", tag="p", class_="notice notice-error", role="alert")}{slot("notes")}</div>
<div class="line views">{switch("view", "View", VIEWS)}
<div data-if="view:training">{slot("training-show")}</div></div>"""


def build(page: Page) -> None:
    """Add the panel to the layout."""
    views = "".join(
        f'<section data-if="view:{name}">{"".join(module.TEMPLATE for module in modules)}</section>'
        for name, modules in MODULES.items()
    )
    looks = Looks(page)
    panel = page.panels.add(
        "inspect",
        lambda asked: show(page, looks, asked),
        f'{_FRAME}<div class="views-body">{views}</div>',
        start=Selection().to_dict(),
        of_model="edits layer head suggested query key other kept towards away steered steer_on steer_layer look_at",
        address=ADDRESS,
        elem_id="inspect-panel",
    )
    page.share("inspect", panel)
    page.share("inspect.looks", looks)


def show(page: Page, looks: Looks, asked: Asked) -> Shown:
    """The view: what the panel shows for a selection. Raises ValueError where the prompt cannot be read."""
    at, notes = read(page, looks, asked)
    if asked.clicked:
        changes = _clicked(at, asked.clicked)
        at, notes = read(page, looks, Asked(asked.visitor, at.chosen.moved(**changes).to_dict()))
    slots = {
        **_frame(at, notes),
        **carried_slot(page, at.visitor, at.chosen.model if at.chosen.subject == MODEL else None),
        **strip.slots(at),
        **{name: each for module in MODULES[at.chosen.view] for name, each in module.slots(at).items()},
    }
    return Shown(at.chosen.to_dict(), slots, facts(at))


def read(page: Page, looks: Looks, asked: Asked) -> tuple[At, list[str]]:
    """What was asked for, and notes on how the prompt was read. Raises ValueError."""
    chosen = Selection.read(asked.selection)
    if chosen.typed and chosen.read_by not in ("", chosen.model) and not _can_read(page, asked.visitor, chosen):
        chosen = chosen.moved(prompt=None, typed=False)
    chosen = chosen.moved(read_by=chosen.model)
    if chosen.prompt is None:
        chosen = chosen.moved(prompt=prompts(page, chosen.model, asked.visitor)[0])
    if chosen.subject not in SUBJECTS:
        raise LinkError(f"there is no example called “{chosen.subject[:30]}” here")
    look, notes = looks.read(asked.visitor, chosen.model, chosen.prompt, example=chosen.subject)
    weights = None if chosen.subject in EXAMPLES else page.step_of(asked.visitor, chosen.model)
    for edit in parsed(chosen.edits):
        edit.check(look.config)
    at = At(page, asked.visitor, within(chosen, look), look, weights)
    if at.chosen.view == "heads" and (opened := steer.opening(at)):
        return read(page, looks, Asked(asked.visitor, at.chosen.moved(**opened).to_dict()))
    if held := WITHIN.get(at.chosen.view):
        at = dataclasses.replace(at, chosen=at.chosen.moved(**held(at)))
    return at, list(notes)


def _can_read(page: Page, visitor: str, chosen: Selection) -> bool:
    """Whether the model knows all parts of the prompt."""
    tokenizer = page.registry.get(chosen.model, visitor).tokenizer
    return not tokenizer.unknown_parts(in_known_case(chosen.prompt or "", tokenizer))


def facts(at: At) -> dict[str, Any]:
    """The facts that a saved picture or table carries: model, prompt, layer and head."""
    where = {"layer": at.chosen.layer, "head": at.chosen.head}
    if example := EXAMPLES.get(at.chosen.subject):
        return {"model": f"worked example “{example.title}”", "prompt": example.prompt, **where}
    known = model_facts(at.page.registry, at.visitor, at.chosen.model)
    return {**known, "prompt": at.chosen.prompt, **where}


def _clicked(at: At, click: dict[str, Any]) -> dict[str, Any]:
    """What a click in a chart changes; nothing where it names nothing that is drawn."""
    for module in MODULES[at.chosen.view]:
        clicked = getattr(module, "clicked", None)
        if clicked is not None and (changes := clicked(at, click)) is not None:
            return changes
    return {}


def _frame(at: At, notes: list[str]) -> dict[str, Slot]:
    ideas = prompts(at.page, at.chosen.model, at.visitor) if at.chosen.subject == MODEL else []
    return {
        "ideas": Slot(ideas, lambda: "".join(chip(text, _beginning(text)) for text in ideas)),
        "notes": Slot(notes, lambda: "".join(theme.notice(note) for note in notes)),
    }


def _beginning(text: str) -> dict[str, Any]:
    """What trying this text selects."""
    return Selection(prompt=text).model_dump(include={"prompt", "typed", "query", "key", "other", "kept"})
