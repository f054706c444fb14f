"""What heads do, tested over many texts; of a model too large for that, what one head does on this prompt."""

from __future__ import annotations

import numpy as np

from ....inspection.heads import head_scores
from ....inspection.roles import REPEATS, HeadTests
from ....words.heads import (
    CRITERIA,
    HABIT_NAMES,
    ROLE_NAMES,
    effect_or_noise,
    head_name,
    interval,
    role_words,
    roles_counted,
)
from ... import theme
from ...panel import Slot, move_button, slot
from ...refusals import sentence
from .selection import At, importance
from .tested import Tested, roles_of

TEMPLATE = f"""<details class="fold" data-fold="roles"><summary>Head roles, tested on many texts</summary>
<div class="card stack">{slot("roles", class_="stack")}{slot("role", class_="stack")}
<details><summary>When does a head have a role?</summary><p>{CRITERIA}</p></details></div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """All heads' roles and the chosen head's numbers, where this is unfolded."""
    c = at.chosen
    if not c.roles:
        return {}
    about = (*at.about, c.layer, c.head)
    return {
        "roles": Slot(about, lambda: roles(at), slow=True),
        "role": Slot(about, lambda: role_card(at), slow=True),
    }


def _tested(at: At) -> tuple[Tested | None, str]:
    """The tests, or None and why there are none."""
    try:
        return roles_of(at.page, at.look), ""
    except ValueError as problem:
        return None, theme.notice(sentence(str(problem)))


def roles(at: At) -> str:
    """The heads with a clear role, the one without which the loss rises most first; below them all others, folded."""
    found, problem = _tested(at)
    if not found:
        return problem
    tests, clear, others = found.tests, [], []
    for owner in tests.ranking():
        role, lost = tests.role(*owner), effect_or_noise(tests.effect, owner, digits=3)
        if role == "unclear":
            others.append((_button(at, owner), _most_weight(tests, owner), lost))
        else:
            clear.append((_button(at, owner), theme.Cell(role_words(role), kind="words"), lost))
    lost = "higher loss without it (nats)"
    shown = theme.result(roles_counted(tests))
    if clear:
        shown += theme.table(("head", theme.Cell("role", kind="words"), lost), clear)
    if others:
        rest = theme.table(("head", theme.Cell("most weight on", kind="words"), lost), others)
        shown += f"<details><summary>Heads without a clear role</summary>{rest}</details>"
    return shown + theme.quiet(f"Measured on {tests.texts} texts: {found.words}.")


def _button(at: At, owner: tuple[int, int]) -> theme.Cell:
    """A head's name, which selects it."""
    layer, head = owner
    pressed = str(owner == at.owner).lower()
    move = {"layer": layer, "head": head, "key": None}
    return theme.Cell(html=move_button(f"{layer}.{head}", move, kind="chip", aria_pressed=pressed))


def _most_weight(tests: HeadTests, owner: tuple[int, int]) -> theme.Cell:
    """Where the head puts most of its weight, and how much."""
    name = max(HABIT_NAMES, key=lambda name: np.nan_to_num(tests.weights[name].mean[owner]))
    return theme.Cell(f"{HABIT_NAMES[name]}: {interval(tests.weights[name], owner)}", kind="words")


def role_card(at: At) -> str:
    """The chosen head's role, and the numbers that made it."""
    found = _tested(at)[0]
    here, shift, owner = head_scores(at.look).of(*at.owner), importance(at.look), at.owner
    title = head_name(*owner)
    if found is None:
        rows = [(f"weight on {habit}", _number(here[name])) for name, habit in HABIT_NAMES.items()]
        return theme.heading(title) + theme.table(("", "this prompt"), rows)
    tests, rows = found.tests, []
    for name, habit in HABIT_NAMES.items():
        bound, there = f"≤ {tests.untrained[name]:.2f}", interval(tests.weights[name], owner)
        rows.append((f"weight on {habit}", there, bound, _number(here[name])))
        if name in REPEATS and tests.given_up[name].is_clear(*owner):
            lost, bound = interval(tests.given_up[name], owner), f"≤ {tests.untrained_given_up[name]:.2f}"
            rows.append((f"weight on {habit}, lost without the earlier copy", lost, bound, ""))
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
    table = theme.table(("", f"{tests.texts} texts", "untrained", "this prompt"), rows)
    role = tests.role(*owner)
    if role == "unclear" and shift is not None and shift[owner] == shift.max():
        role = "unclear here"
    return f"{theme.quiet(f'{title} {ROLE_NAMES[role]}.')}<details><summary>Its numbers</summary>{table}</details>"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"
