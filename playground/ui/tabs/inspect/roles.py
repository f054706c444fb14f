"""What heads do, tested over many texts; of a model too large for that, what they do on this prompt."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....figures.parts import share_map
from ....inspection import Look
from ....inspection.heads import head_scores
from ....inspection.roles import REPEATS
from ....words.heads import CRITERIA, HABIT_NAMES, ORDERS, ROLE_NAMES, effect_or_noise, interval, roles_counted
from ... import theme
from ...chart import chart_place, show
from ...clicks import cell_of
from ...panel import Slot, slot
from ...refusals import sentence
from .drawn import MOST_HEADS
from .selection import At, importance, order, ranking
from .tested import Tested, known, roles_of

TEMPLATE = f"""<details class="fold" data-fold="roles"><summary>Head roles, tested on many texts</summary>
<div class="two wide-left"><div class="card stack">{slot("roles-headline")}
<p class="quiet">Where each head puts its weight, on average. Click a row.</p>
{chart_place("roles-map", height=260, save_name="head-map", clickable=True)}</div>
<div class="card">{slot("role")}
<details><summary>When does a head have a role?</summary><p>{CRITERIA}</p></details></div></div></details>"""

MEASURES = {**HABIT_NAMES, "evenness": "spread evenly"}
"""The columns of the map."""


def slots(at: At) -> dict[str, Slot]:
    """The map of heads and the chosen head's numbers, where this is unfolded."""
    c = at.chosen
    if not c.roles:
        return {}
    about = (*at.about, c.layer, c.head)
    return {
        "roles-headline": Slot(at.about, lambda: headline(at), slow=True),
        "roles-map": Slot(about, lambda: show(*head_picture(at), **measured(at)), slow=True),
        "role": Slot(about, lambda: role_card(at), slow=True),
    }


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """Select the head whose row in the map was clicked."""
    if click.get("slot") != "roles-map":
        return None
    drawn = heads(at.look)
    layer, head = drawn[cell_of(click, rows=len(drawn), columns=len(MEASURES))[0]]
    return {"layer": layer, "head": head, "key": None}


def _tested(at: At) -> tuple[Tested | None, str]:
    """The tests, or None and why there are none."""
    try:
        return roles_of(at.page, at.look), ""
    except ValueError as problem:
        return None, theme.notice(sentence(str(problem)))


def heads(look: Look) -> list[tuple[int, int]]:
    """(layer, head) of the rows: by the loss of the texts that they were tested on, else by this prompt."""
    found = known(look)
    return (found.tests.ranking() if found else ranking(look))[:MOST_HEADS]


def measured(at: At) -> dict[str, Any]:
    """What a saved picture says of the text that it was measured on."""
    return {"prompt": None, "measured on": "many texts"} if _tested(at)[0] else {}


def headline(at: At) -> str:
    """How many heads have which role, or why that is unknown."""
    found, problem = _tested(at)
    return theme.result(roles_counted(found.tests)) if found else problem


def head_picture(at: At) -> tuple[dict[str, Any], str]:
    """Every head's share of weight on each place, and on which text."""
    found, drawn = _tested(at)[0], heads(at.look)
    if found:
        means = {**found.tests.weights, "evenness": found.tests.evenness}
        values = [[means[name].at(*owner)[0] for name in MEASURES] for owner in drawn]
        words = f"Measured on {found.tests.texts} texts: {found.words}. Rows: {ORDERS['loss']}."
    else:
        values = [[head_scores(at.look).of(*owner)[name] for name in MEASURES] for owner in drawn]
        words = f"Measured on this prompt. Rows: {ORDERS[order(at.look)]}."
    chosen = drawn.index(at.owner) if at.owner in drawn else None
    return share_map(np.array(values), [f"{a}.{b}" for a, b in drawn], list(MEASURES.values()), chosen=chosen), words


def role_card(at: At) -> str:
    """The chosen head's role, and the numbers that made it."""
    found = _tested(at)[0]
    here, shift, owner = head_scores(at.look).of(*at.owner), importance(at.look), at.owner
    title = f"Head {owner[0]}.{owner[1]}"
    if found is None:
        rows = [(f"weight on {name}", _number(here[key])) for key, name in MEASURES.items()]
        return theme.heading(title) + theme.table(("", "this prompt"), rows)
    tests, rows = found.tests, []
    for name, habit in HABIT_NAMES.items():
        bound, there = f"≤ {tests.untrained[name]:.2f}", interval(tests.weights[name], owner)
        rows.append((f"weight on {habit}", there, bound, _number(here[name])))
        if name in REPEATS:
            lost, bound = effect_or_noise(tests.given_up[name], owner), f"≤ {tests.untrained_given_up[name]:.2f}"
            rows.append(("… of it lost when the copy is replaced", lost, bound, ""))
    effect = effect_or_noise(tests.effect, owner, digits=4)
    rows += [
        ("evenness", interval(tests.evenness, owner), "", _number(here["evenness"])),
        (
            "weight that shifts when the text changes",
            interval(tests.moved, owner),
            f"≤ {tests.untrained['moved']:.2f}",
            "",
        ),
        (f"higher loss without it (nats, {tests.tokens:,} tokens)", effect, "", ""),
    ]
    if shift is not None:
        rows.append(("change of the last prediction without it (nats)", "", "", f"{shift[owner]:.2f}"))
    words = f"It {ROLE_NAMES[tests.role(*owner)]}."
    table = theme.table(("", f"{tests.texts} texts", "untrained", "this prompt"), rows)
    return f"{theme.heading(title, words)}<details><summary>Its numbers</summary>{table}</details>"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"
