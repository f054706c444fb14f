"""What heads do, tested over many texts."""

from __future__ import annotations

from ....inspection.roles import REPEATS
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
from .selection import At
from .tested import roles_of

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
        "role": Slot(about, lambda: role_card(at), slow=True, echoes=True),
    }


def roles(at: At) -> str:
    """The heads with a clear role, the one without which the loss rises most first; below them all others, folded."""
    found = roles_of(at.page, at.look)
    tests, clear, others = found.tests, [], []
    for owner in tests.ranking():
        role, lost = tests.role(*owner), effect_or_noise(tests.effect, owner, digits=3)
        if role == "unclear":
            others.append((_button(at, owner), lost))
        else:
            clear.append((_button(at, owner), theme.Cell(role_words(role), kind="words"), lost))
    lost = "higher loss without it (nats)"
    shown = theme.result(roles_counted(tests))
    if clear:
        shown += theme.table(("head", theme.Cell("role", kind="words"), lost), clear)
    if others:
        shown += (
            f"<details><summary>Heads without a clear role</summary>{theme.table(('head', lost), others)}</details>"
        )
    return shown + theme.quiet(f"Measured on {tests.texts} texts: {found.words}.")


def _button(at: At, owner: tuple[int, int]) -> theme.Cell:
    """A head's name, which selects it."""
    layer, head = owner
    pressed = str(owner == at.owner).lower()
    move = {"layer": layer, "head": head, "key": None}
    return theme.Cell(html=move_button(f"{layer}.{head}", move, kind="chip", aria_pressed=pressed))


def role_card(at: At) -> str:
    """The chosen head's role, and the numbers that made it."""
    tests, owner, rows = roles_of(at.page, at.look).tests, at.owner, []
    for name, habit in HABIT_NAMES.items():
        rows.append((f"weight on {habit}", interval(tests.weights[name], owner), f"≤ {tests.untrained[name]:.2f}"))
        if name in REPEATS and tests.given_up[name].is_clear(*owner):
            lost, bound = interval(tests.given_up[name], owner), f"≤ {tests.untrained_given_up[name]:.2f}"
            rows.append((f"weight on {habit}, lost without the earlier copy", lost, bound))
    shifts = "weight that shifts when the text changes"
    rows += [
        ("evenness", interval(tests.evenness, owner), ""),
        (shifts, interval(tests.moved, owner), f"≤ {tests.untrained['moved']:.2f}"),
        (f"higher loss without it (nats, {tests.tokens:,} tokens)", effect_or_noise(tests.effect, owner, digits=4), ""),
    ]
    table = theme.table(("", f"{tests.texts} texts", "untrained"), rows)
    said = theme.quiet(f"{head_name(*owner)} {ROLE_NAMES[tests.role(*owner)]}.")
    return f"{said}<details><summary>Its numbers</summary>{table}</details>"
