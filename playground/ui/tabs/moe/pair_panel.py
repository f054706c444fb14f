"""The pair panel: the result of a dense model and a mixture, and why; below, folded, all that is known about them."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

from ....service.comparisons import ComparisonJob
from ...chart import chart_place, show
from ...page import Page
from ...panel import Asked, Shown, Slot, choice, slot, switch
from ...quoted import model_facts
from ...under_way import notices
from . import both, breaking, experts, loads, routing, table, verdict
from .selection import At, Selection, at, pairs, within

FOLDS = {"routing": routing, "loads": loads, "experts": experts, "breaking": breaking, "figures": table, "texts": both}
"""The modules that draw each fold: TITLE, TEMPLATE, slots(at). A ValueError shows in the slot <fold>-note."""
CLICKED = {"expert-costs": breaking.clicked}
"""Chart → the function for a click in it."""
ADDRESS = "dense mixture curve routing loads experts breaking figures texts prompt typed layer token"
"""The fields of the selection that the page's address holds."""
OF_MODEL = "layer token off worth"
"""The fields that are kept separately for each model."""


def _folded(name: str) -> str:
    return (
        f'<details class="fold" id="moe-{name}" data-fold="{name}"><summary>{FOLDS[name].TITLE}</summary>'
        f"{FOLDS[name].TEMPLATE}</details>"
    )


TEMPLATE = f"""<div class="card pair-card">{slot("notices")}
{slot("problem", tag="p", class_="notice notice-error", role="alert")}
<div class="line pair-head"><div id="moe-verdict" class="grow">{slot("headline", tag="h2")}
{slot("about", tag="p", class_="quiet")}
{slot("numbers", tag="p", class_="num")}</div>{slot("choice")}</div>
<details class="pair-details"><summary>Details</summary>{slot("details", class_="stack")}</details>
<div id="moe-difference">{chart_place("interval", height=86, save_name="verdict", toolbar=False)}</div>
<div class="facts">{slot("facts")}{slot("speed")}</div>{slot("remarks", class_="stack")}
<div class="line">{switch("curve", "Curve", verdict.CURVES)}</div>
<div id="moe-curve">{chart_place("curve", height=300, save_name="dense-vs-moe")}</div></div>
{"".join(map(_folded, FOLDS))}"""


def show_pair(page: Page, asked: Asked) -> Shown:
    """The view: what the panel shows for a selection."""
    here = within(at(page, asked.visitor, Selection.read(asked.selection)))
    if asked.clicked:
        clicked = CLICKED.get(str(asked.clicked.get("slot")))
        changes = clicked(here, asked.clicked) if clicked else {}
        here = within(replace(here, chosen=here.chosen.moved(**changes)))
    slots = _card(here)
    for name, module in FOLDS.items():
        if getattr(here.chosen, name):
            try:
                slots |= {f"{name}-note": Slot("", str)} | module.slots(here)
            except ValueError as problem:
                slots |= here.undrawn(module.TEMPLATE, f"{name}-note", problem)
    chosen = here.chosen
    facts = model_facts(page.registry, asked.visitor, *here.ids)
    return Shown(chosen.to_dict(), slots, facts | ({"prompt": chosen.prompt} if chosen.routing else {}))


# ---- the card --------------------------------------------------------------------------------------------------------


def _card(here: At) -> dict[str, Slot]:
    view = here.view
    slots = {"notices": notices(here.page, here.visitor, ComparisonJob), "choice": _choice(here)}
    if view is None:
        nothing = Slot(None, lambda: "Nothing has been compared yet.")
        return slots | {"headline": nothing, "remarks": Slot(None, lambda: "")}
    measured = bool(verdict.along(view))
    before_first = view.active and not measured
    mark = '<i class="before-first"></i>' * before_first  # what was drawn before stays there, dimmed
    # two recorded models have no verdict until they are judged, which takes a moment
    slow, this = here.job is None, (*here.about_both, view.id, view.state, view.verdict if here.job else None)

    def seen(make: Any) -> Any:
        return lambda: make(here.seen())

    facts = (this, view.version if view.active else 0, view.withheld if here.job else "")
    slots |= {
        "headline": Slot(facts, seen(lambda v: html.escape(verdict.headline(v))), slow),
        "about": Slot((facts, before_first), lambda: verdict.about(view) + mark),
        "numbers": Slot(facts, seen(verdict.numbers), slow),
        "details": Slot(facts, seen(verdict.details), slow),
        "remarks": Slot((facts, view.notices), seen(verdict.remarks), slow),
    }
    if before_first:
        return slots
    kind = here.chosen.curve
    slots |= {
        "interval": Slot(facts, seen(lambda v: show(*verdict.interval(v))), slow),
        "facts": Slot(this, lambda: verdict.facts(view) if view.sides else ""),
        "speed": Slot(view.speeds, lambda: verdict.speed_fact(table.speeds_of(here)), slow),
        "curve": Slot((facts, kind), seen(lambda v: show(*verdict.curve(v, kind), aloud=True)), slow),
    }
    return slots


def _choice(here: At) -> Slot:
    known = {" ".join(ids): name for ids, name in pairs(here.page, here.visitor).items()}
    now = here.chosen.pair
    if now not in known:
        known = {now: here.view.name if here.view else ""} | known
    open_to = len(known) > 1 and not (here.job and here.job.active)  # a pair that trains is shown until it is done
    return Slot((known, now, open_to), lambda: choice("pair", "Pair", known, now, resets=RESETS) if open_to else "")


RESETS = "dense mixture layer token prompt off worth"
"""The fields that are reset for another pair."""
