"""Both side by side: the table, and what both models write after the same beginning."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ....engine import SamplingConfig, stream
from ....storage import Checkpoint
from ...panel import Slot, choice, move_button, slot
from ...prompts import read_prompt
from ...theme import badge, notice
from .selection import PROMPT, At
from .table import pair_table, training_speeds

TITLE = "Figures and texts side by side"
TOKENS = 60
TEMPERATURE = 0.8

TEMPLATE = f"""<div class="stack"><div class="line">{slot("both-choice", class_="line tight")}</div>
<div id="moe-table">{slot("table", class_="stack")}</div>
<div class="line">{PROMPT}{slot("both-again")}</div>{slot("figures-note")}
{slot("both-texts", id="both-texts", class_="stack")}</div>"""


def slots(at: At) -> dict[str, Slot]:
    """Everything of this fold."""
    c, view = at.chosen, at.view
    known = {experts: at.page.registry.choices(at.visitor, experts=experts) for experts in (False, True)}
    shown = {"both-choice": Slot((known, at.ids), lambda: _choice(known, at.ids))}
    state = (at.about_both, view.id, view.state, view.version if view.active else 0) if view else None
    shown["table"] = Slot(state, lambda: table_of(at), slow=True)
    try:
        pair = at.pair
        prompt = c.prompt or ""
        read = [read_prompt(at.page, checkpoint, prompt) for checkpoint in pair]
    except ValueError as problem:
        return at.undrawn(TEMPLATE, "figures-note", problem) | shown
    notes = list(dict.fromkeys(text for _, found in read for text in found))
    ids = [tokens[-each.config.context_length :] for each, (tokens, _) in zip(pair, read)]
    rules = SamplingConfig(temperature=TEMPERATURE, seed=c.seed)
    return shown | {
        "figures-note": Slot(notes, lambda: "".join(notice(text, "warning") for text in notes)),
        "both-texts": Slot((*at.about_both, prompt, c.seed), lambda: texts(pair, ids, rules), slow=True),
        "both-again": Slot(c.seed, lambda: move_button("Write again", {"seed": (c.seed + 1) % 1000})),
    }


def _choice(known: dict[bool, list[tuple[str, str]]], ids: tuple[str, str]) -> str:
    """A choice of any other two models."""
    parts = []
    for name, label, experts, now in (("dense", "Dense", False, ids[0]), ("mixture", "MoE", True, ids[1])):
        options = {model_id: title for title, model_id in known[experts]}
        parts.append(choice(name, label, options, now, resets="pair layer token prompt off worth"))
    return "".join(parts)


def table_of(at: At) -> str:
    """The table. If two models were not trained in turns, their speed is timed, which takes seconds the first time."""
    view = at.seen()
    if view is None or not view.sides:
        return pair_table(view)
    if at.job:
        return pair_table(view, view.speeds)
    try:
        return pair_table(view, training_speeds(*(checkpoint.model for checkpoint in at.pair)))
    except ValueError:  # one of them has left the registry meanwhile
        return pair_table(view)


def texts(pair: Sequence[Checkpoint], ids: Sequence[list[int]], rules: SamplingConfig) -> str:
    """The texts that both models write from the same seed, each after the last line of the prompt, as HTML."""
    given, new = [], []
    for checkpoint, tokens in zip(pair, ids):
        given.append(checkpoint.tokenizer.decode(tokens).rpartition("\n")[2])
        streamed = stream(checkpoint.model, checkpoint.tokenizer, tokens, TOKENS, rules, shared=True)
        new.append("".join(token.text for _, (token,) in streamed))
    return both_texts(given, new)


def both_texts(given: Sequence[str], new: Sequence[str]) -> str:
    """Two texts side by side, each after what was `given`, with a mark where they part. Escaped."""
    same = next((i for i, (a, b) in enumerate(zip(*new)) if a != b), min(map(len, new)))
    cards = []
    for name, kind, start, text in zip(("Dense", "MoE"), ("dense", "moe"), given, new):
        shared, own = html.escape(text[:same]), html.escape(text[same:])
        cards.append(
            f'<div>{badge(name, kind)}<p class="sample" dir="auto"><span class="prompt">{html.escape(start)}</span>'
            f"{shared}"
            f'<mark class="parted-{kind}">{own}</mark></p></div>'
        )
    place = f"after {same:,} character{'s' * (same > 1)}" if same else "at the first token"
    words = "Both wrote the same." if new[0] == new[1] else f"With the same random numbers, the texts diverge {place}."
    return f'<h3>{words}</h3><div class="by-temperature">{"".join(cards)}</div>'
