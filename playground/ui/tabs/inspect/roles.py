"""What heads do: tested over many texts, or looked at on this prompt or on a repeated random sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....figures.heads import describe_head_map, describe_worth, head_map
from ....figures.parts import part_map
from ....inspection import Look, look
from ....inspection.heads import EVEN, HABITS, head_scores, moves, repeated_sequence, row_summary, summary
from ....inspection.roles import REPEATS, Estimate, HeadTests
from ....words.heads import HABIT_NAMES, ROLE_NAMES, lies_on, role_reason, row_lies_on
from ....words.numbers import signed
from ... import theme
from ...chart import chart_place, show
from ...clicks import cell_of
from ...panel import Slot, slot, switch
from ...refusals import sentence
from .selection import At, importance, ranking
from .tested import Tested, roles_of

SEQUENCES = {"tested": "Many texts", "prompt": "This prompt", "repeated": "A random sequence, twice"}
MAPS = {
    "effect": "matter most",
    **{name: f"attend to {title}" for name, title in HABIT_NAMES.items()},
    "evenness": "spread their attention evenly",
}

TEMPLATE = f"""<details class="fold" data-fold="roles"><summary>Head roles, tested on many texts</summary>
<div class="two wide-left"><div class="card stack">{switch("sequence", "Measured on", SEQUENCES)}
{switch("habit", "Heads that", MAPS)}
{chart_place("roles-map", height=260, save_name="head-map", clickable=True)}</div>
<div class="card">{slot("role")}</div></div>
<details><summary>All heads as a table</summary>{slot("roles-table")}</details></details>"""

ENOUGH = {"evenness": EVEN}
"""Scores from which heads are counted, where they are others than the map's own."""


def slots(at: At) -> dict[str, Slot]:
    """The map of heads, the chosen head's numbers and the table; where this is unfolded."""
    c = at.chosen
    if not c.roles:
        return {}
    about = (*at.about, c.layer, c.head)
    return {
        "roles-map": Slot((*about, c.sequence, c.habit), lambda: _map(at), slow=True),
        "role": Slot((*about, c.query), lambda: _card(at), slow=True),
        "roles-table": Slot(at.about, lambda: role_table(at.look, _tested(at)[0]), slow=True),
    }


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A cell of the map chooses its head."""
    if click.get("slot") != "roles-map":
        return None
    layer, head = cell_of(click, rows=at.look.config.n_layers, columns=at.look.config.n_heads)
    return {"layer": layer, "head": head, "key": None}


def _tested(at: At) -> tuple[Tested | None, str]:
    """The tests, or None and why there are none."""
    try:
        return roles_of(at.page, at.look), ""
    except ValueError as problem:
        return None, theme.notice(sentence(str(problem)))


def _map(at: At) -> dict[str, Any] | None:
    c, (found, _) = at.chosen, _tested(at)
    which = c.sequence if c.sequence in SEQUENCES and (found or c.sequence != "tested") else "prompt"
    name = c.habit if c.habit in MAPS else "effect"
    read = {} if which == "prompt" else {"prompt": None, "measured on": SEQUENCES[which].lower()}
    return show(*head_picture(at.look, at.owner, found, which, name), measure=name, **read)


def _card(at: At) -> str:
    found, problem = _tested(at)
    return problem + role_card(at.look, at.owner, at.chosen.query, found)


def asked(look: Look, owner: tuple[int, int], query: int) -> str:
    """Where the head's weight lies from one token."""
    return f"The query {query} “{look.tokens[query]}” {row_lies_on(row_summary(look, *owner, query), look.tokens)}."


def repeated(seen: Look) -> Look:
    """The same model's look at a random sequence that comes twice."""
    return look(seen.checkpoint, repeated_sequence(seen.config, seen.checkpoint.tokenizer.vocab_size))


def head_picture(
    seen: Look, owner: tuple[int, int], known: Tested | None, which: str, name: str
) -> tuple[dict[str, Any] | None, str]:
    """One number of every head as a map, and what it says; of many texts, of this prompt, or of a sequence twice."""
    title = MAPS[name]
    if which == "tested":
        tests = known.tests
        if name == "effect":
            words = describe_worth(tests.effect.mean, tests.effect.margin, "nats per token", tests.first)
            picture = worth_map(tests.effect.mean, owner)
        else:
            values = tests.evenness.mean if name == "evenness" else tests.weights[name].mean
            picture, words = (
                head_map(values, title, chosen=owner),
                describe_head_map(values, title, ENOUGH.get(name, 0.4)),
            )
        loss = f"the losses on {tests.tokens:,} tokens, the roles on " if name == "effect" else ""
        return picture, f"{words} {census(tests)} Measured: {loss}{tests.texts} texts: {known.words}."
    measured = seen if which == "prompt" else repeated(seen)
    if name == "effect":
        found = importance(seen) if which == "prompt" else moves(measured) if importance(seen) is not None else None
        if found is None:
            return None, "This model is too large to switch off each head in turn here."
        return worth_map(found, owner), describe_worth(
            found, None, "nats (Kullback–Leibler divergence of the last prediction)"
        )
    values = getattr(head_scores(measured), name)
    return head_map(values, title, chosen=owner), describe_head_map(values, title, ENOUGH.get(name, 0.4))


def worth_map(values: np.ndarray, owner: tuple[int, int]) -> dict[str, Any]:
    """What is lost without each head (L, H), in nats."""
    names = [f"head {head}" for head in range(values.shape[1])]
    return part_map(values, names, "without it: %{customdata:+.5f} nats", mark=owner)


def census(tests: HeadTests) -> str:
    """How many heads have which role."""
    roles = [role for row in tests.roles for role in row]
    counts = "; ".join(f"{words}: {roles.count(role)}" for role, words in ROLE_NAMES.items() if role in roles)
    return f"By role, of {len(roles)} {'heads' if len(roles) > 1 else 'head'}: {counts}."


def role_card(seen: Look, owner: tuple[int, int], query: int, known: Tested | None) -> str:
    """The chosen head's role, the numbers that made it, and what the head does on this prompt."""
    here, shift = head_scores(seen).of(*owner), importance(seen)
    on_prompt = f"On this prompt it {lies_on(summary(seen, *owner))}. {asked(seen, owner, query)}"
    title = f"Layer {owner[0]}, head {owner[1]}"
    if known is None:
        rows = [(f"weight on {HABIT_NAMES[name]}", _number(here[name])) for name in HABITS]
        rows.append(("evenness", _number(here["evenness"])))
        return theme.heading(title, on_prompt) + theme.table(("", "this prompt"), rows)
    tests, at = known.tests, owner
    rows = []
    for name in HABITS:
        before, told = f"≤ {tests.untrained[name]:.2f}", _interval(tests.weights[name], at)
        rows.append((f"weight on {HABIT_NAMES[name]}", told, before, _number(here[name])))
        if name in REPEATS:
            gone = _interval(tests.given_up[name], at)
            rows.append(("… of it lost when the copy is replaced", gone, f"≤ {tests.untrained_given_up[name]:.2f}", ""))
    rows.append(("evenness", _interval(tests.evenness, at), "", _number(here["evenness"])))
    moved_before = f"≤ {tests.untrained['moved']:.2f}"
    rows.append(("weight that moves in another text", _interval(tests.moved, at), moved_before, ""))
    rows.append(
        (f"higher loss without it (nats, {tests.tokens:,} tokens)", _interval(tests.effect, at, digits=4), "", "")
    )
    if shift is not None:
        rows.append(("change of the last prediction without it (nats)", "", "", f"{shift[at]:.4f}"))
    words = f"It {ROLE_NAMES[tests.role(*at)]}. {role_reason(tests, *at)} {on_prompt}"
    return theme.heading(title, words) + theme.table(("", f"{tests.texts} texts", "untrained", "this prompt"), rows)


def role_table(seen: Look, known: Tested | None) -> str:
    """Every head's numbers, the one that matters most first."""
    if known is None:
        columns = [*HABITS, "evenness"]
        rows = [
            (*at, *(_number(head_scores(seen).of(*at)[name]) for name in columns)) for at in ranking(seen)
        ]  # fmt: skip
        return theme.table(("layer", "head", *columns), rows, save="head-scores")
    tests, columns = known.tests, (*HABITS, "evenness")
    rows = []
    for at in tests.ranking():
        found = {**tests.weights, "evenness": tests.evenness}
        rows.append((*at, ROLE_NAMES[tests.role(*at)], _interval(tests.effect, at, digits=4),
                     *(_interval(found[name], at) for name in columns)))  # fmt: skip
    names = [HABIT_NAMES.get(name, name) for name in columns]
    return theme.table(("layer", "head", "role", "lost without it", *names), rows, save="head-tests")


def _interval(estimate: Estimate, at: tuple[int, int], digits: int = 2) -> str:
    mean, margin = estimate.at(*at)
    # no space that could break
    return "–" if np.isnan(mean) else f"{signed(mean, digits)}\u00a0±\u00a0{margin:.{digits}f}"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"
