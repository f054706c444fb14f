"""Find the circuit: the fewest heads and layers that carry the difference between two prompts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....figures.interventions import circuit_picture
from ....figures.wire import shortened
from ....interventions import circuit
from ....interventions.pairs import fresh_pairs
from ....words.interventions import boxes_words, circuit_prompts, circuit_result
from ....words.result import Result
from ...chart import chart_place
from ...clicks import index_of
from ...panel import Slot, slot
from .pairs import answers_of, check_size, ideas, kept_here, pair_here, texts_like, with_headline
from .selection import At

TEMPLATE = f"""<details class="fold" data-fold="circuit"><summary>Find the circuit</summary><div class="card stack">
{slot("circuit-ideas", class_="line")}<div class="stack" data-if="other">{slot("circuit-headline")}
<div data-reveal="headline">{chart_place("circuit", height=400, save_name="circuit", clickable=True)}</div></div>
</div></details>"""

KNOWN, FRESH = 7, 24
"""Further pairs on which a circuit is found, and others on which it is checked, at most."""
SHOWN = 60
"""Characters of the other prompt that are repeated."""


def slots(at: At) -> dict[str, Slot]:
    """The slots of the circuit's graph; without a second prompt, pairs to choose from."""
    c = at.chosen
    if not c.circuit:
        return {}
    if not c.other:
        return {"circuit-ideas": ideas(at)}
    boxes = lambda: boxes_words(shortened(c.other.strip(), SHOWN))  # noqa: E731
    graph = with_headline("circuit", (*at.about, c.other), lambda: _graph(at), boxes)
    return {"circuit-ideas": Slot("", str), **graph}


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A head of the graph becomes the chosen one."""
    if click.get("slot") != "circuit":
        return None
    heads = _found(at).heads
    node = heads[index_of(click, len(heads))]
    return {"layer": node.layer, "head": node.head, "key": None}


def _found(at: At) -> circuit.Circuit:
    look, pair = at.look, pair_here(at)
    check_size(at, look.length * circuit.passes_of(look.config, 1 + KNOWN), "a search of its circuits")

    def search() -> circuit.Circuit:
        more = fresh_pairs(look.model, look.checkpoint.tokenizer, pair, texts_like(at), n=KNOWN + FRESH)
        known = min(max(len(more) - 1, 0) // 2, KNOWN)
        return circuit.find_circuit(look.model, [pair, *more[:known]], more[known:])

    return kept_here.get(("circuit", pair), search, owner=look.model)


def _graph(at: At) -> tuple[dict[str, Any], Result]:
    found, answers, pair = _found(at), answers_of(at), pair_here(at)
    places = circuit.places_of(found, at.look.ids, at.look.pattern)
    result = circuit_result(found, places, at.look.tokens, *answers)
    prompts = circuit_prompts(len(pair.changed), at.look.length)
    return circuit_picture(found, answers[0]), replace(result, details=f"{result.details} {prompts}")
