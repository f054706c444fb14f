"""The Generate tab: one panel. A model writes; every choice in its text can be opened and changed.

selection.py   what is selected; writing.py: POST /write, the text as it grows, and the text it opens with
kept.py        a text that the browser sends back; choice.py: one of its tokens, opened
why.py         its copied pieces, the passages behind it, and the proof
game.py        guess the next letter; temperatures.py, precision.py: the experiments
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ....engine import PRECISIONS
from ... import theme
from ...forms import sampling as form
from ...links import carried_slot
from ...page import Page
from ...panel import Asked, Shown, Slot, attributes_html, chip, move_button, slot
from ...panel import choice as drop_down
from ...prompts import suggestions
from ...quoted import model_facts
from . import game, precision, temperatures, why
from .choice import opened
from .selection import Selection
from .writing import Writing, no_mask, recorded

TITLE = "Generate"
IDEAS = 3
"""How many beginnings are offered."""


def _number(name: str, label: str = "") -> str:
    field = form.BY_NAME[name]
    bounds = {"min": field.least, "max": field.most, "step": field.step}
    more = {key: str(value) for key, value in bounds.items() if isinstance(value, (int, float))}
    more = attributes_html({"type": "number", "name": name, "inputmode": "decimal", "title": field.why, **more})
    return f'<label class="field-label">{label or field.label}<input{more}></label>'


_ADVANCED = "".join(
    [
        *map(_number, ("top_k", "top_p", "min_p", "repetition_penalty", "samples", "seed")),
        '<label class="check"><input type="checkbox" name="same_again">Repeat exactly (keep the seed)</label>',
        drop_down("precision", "Precision", {name: name for name in PRECISIONS}, PRECISIONS[0]),
        '<label class="field-label" title="One text per line">Stop at'
        '<textarea name="stop" rows="1" dir="auto" autocomplete="off" spellcheck="false"></textarea></label>',
        f'<button type="button" class="ghost" data-copy-link>Copy link</button>{slot("carried")}',
    ]
)

TEMPLATE = f"""<div class="card generate-ask">
<div class="line"><label class="grow"><span class="sr-only">Prompt</span><textarea name="prompt" rows="1" dir="auto"
autocomplete="off" spellcheck="false" placeholder="The model continues this text"></textarea></label>
<button type="button" class="primary generate-start">Generate</button></div>
<div class="line tight"><span class="quiet">Try one</span>{slot("ideas", class_="chips", data_arrows="")}
<span class="grow"></span><label class="field-label temperature" title="Temperature">Safe<input type="range"
name="temperature" min="0" max="3" step="0.05" aria-label="Temperature, from safe to wild">Wild
<output data-of="temperature"></output></label>{_number("new_tokens", "Length")}</div>
<details data-fold="advanced"><summary>{slot("advanced-said", tag="span")}</summary>
<div class="line advanced">{_ADVANCED}</div></details>
{slot("problem", tag="p", class_="notice notice-error", role="alert")}{slot("notes")}</div>
<div class="two wide-left"><div class="card">
<div class="written" data-slot="text" data-own data-reveal="choice" data-arrows="10" dir="auto"></div>
<div class="line tight"><p class="written-state" role="status"></p>
<details class="written-details" hidden><summary>Details</summary><p class="quiet"><span class="written-by"></span>
<span class="written-more"></span></p></details>{why.BUTTON.format("link", " hidden")}
<p class="written-said quiet"></p></div>
<p class="quiet tint-words">Tinted: less likely. Tap a token, or select words.</p></div>
<div class="card choice-card stays">{slot("choice", class_="stack")}
<div class="selected-words stack"><h2></h2><p class="quiet">The model gave it <output></output>.</p>
<div>{why.BUTTON.format("primary", "")}</div></div></div>{why.TEMPLATE}</div>
<details class="fold scores"><summary>How the score became a probability</summary>{slot("choice-table")}</details>
<details class="fold" data-fold="game"><summary>{game.TITLE}</summary>{game.TEMPLATE}</details>
<details class="fold" data-fold="experiments"><summary>Experiments: temperatures, precision</summary>
<div class="stack">{temperatures.TEMPLATE}{precision.TEMPLATE}</div></details>"""


def build(page: Page) -> None:
    """Add the panel to the layout."""
    played, reasons = game.Game(page), why.Why(page)
    panel = page.panels.add(
        "generate",
        lambda asked: show(page, played, reasons, asked),
        TEMPLATE,
        start=Selection.first(page.limits).to_dict(),
        of_model="choice heat bits why",
        address="prompt typed temperature new_tokens top_k top_p min_p repetition_penalty samples seed",
        follows=True,
        elem_id="generate-panel",
    )
    page.share("generate", panel)
    page.share("generate.writing", Writing(page))


def show(page: Page, played: game.Game, reasons: why.Why, asked: Asked) -> Shown:
    """The view: what the panel shows for a selection. Raises ValueError if there is no such model."""
    chosen = Selection.read(asked.selection)
    checkpoint = page.registry.get(chosen.model, asked.visitor)
    ideas = suggestions(page, chosen.model, asked.visitor)
    if chosen.prompt is None:
        chosen = chosen.moved(prompt=ideas[0])
    chosen = temperatures.snapshot(chosen, page)
    step = checkpoint.history.last_step
    changed, warning = chosen.changed(page.limits), no_mask(checkpoint)
    slots = {
        "ideas": Slot(ideas, lambda: "".join(chip(text, {"prompt": text, "typed": False}) for text in ideas[:IDEAS])),
        "notes": Slot(warning, lambda: theme.notice(warning, "warning") if warning else ""),
        **carried_slot(page, asked.visitor, chosen.model),
        "advanced-said": Slot(changed, lambda: _advanced(page, changed)),
        "text": Slot((chosen.model, step), lambda: recorded(page, asked.visitor, chosen.model, checkpoint), slow=True),
        **played.slots(asked, checkpoint, chosen),
        **temperatures.slots(page, checkpoint, chosen),
        **precision.slots(page, checkpoint, chosen),
    }
    made = cache(lambda: opened(checkpoint, chosen.choice, page.limits) if chosen.choice is not None else ("", ""))
    about = (chosen.model, step, chosen.choice)
    slots["choice"] = Slot(about, lambda: made()[0])
    slots["choice-table"] = Slot(about, lambda: made()[1], echoes=True)
    answers, scored = reasons.slots(asked, chosen.model, checkpoint, chosen.why)
    facts = {**model_facts(page.registry, asked.visitor, chosen.model), "prompt": chosen.prompt}
    return Shown(chosen.to_dict() | {"why_scored": scored}, slots | answers, facts)


def _advanced(page: Page, changed: list[str]) -> str:
    """The fold's title: how many settings were changed, and a button to reset them."""
    if not changed:
        return "Advanced"
    first = Selection.first(page.limits).to_dict()
    back = move_button("Reset", {name: first[name] for name in changed}, kind="link")
    return f'Advanced<span class="not-in-lessons"> · {len(changed)} changed · {back}</span>'


def selected(value: Any) -> Selection:
    """The panel's selection, from its component's value."""
    return Selection.read(value if isinstance(value, dict) else {})
