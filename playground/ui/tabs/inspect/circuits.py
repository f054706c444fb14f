"""Find the circuit: the fewest heads and layers that carry the difference between two prompts."""

from __future__ import annotations

from typing import Any

from ....figures.interventions import circuit_picture
from ....interventions import circuit
from ....interventions.pairs import fresh_pairs
from ....words.interventions import circuit_result
from ....words.result import Result
from ...chart import chart_place
from ...panel import Slot, slot
from .pairs import PAIRS, answers_of, check_size, ideas, kept_here, pair_here, texts_like, with_headline
from .selection import At

TEMPLATE = f"""<details class="fold" data-fold="circuit"><summary>Find the circuit</summary><div class="card stack">
{slot("circuit-ideas", class_="line")}<div class="stack" data-if="other">{slot("circuit-headline")}
{chart_place("circuit", height=400, save_name="circuit")}</div></div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The slots of the circuit's graph, and pairs to choose from; empty while folded."""
    if not at.chosen.circuit:
        return {}
    about = (*at.about, at.chosen.other)
    suggested = {"circuit-ideas": ideas(at)}
    return {**suggested, **with_headline("circuit", about, lambda: _graph(at))} if at.chosen.other else suggested


def _graph(at: At) -> tuple[dict[str, Any], Result]:
    look, pair = at.look, pair_here(at)
    half = PAIRS // 2
    check_size(at, look.length * circuit.passes_of(look.config, half), "a search of its circuits")

    def search() -> circuit.Circuit:
        more = fresh_pairs(look.model, look.checkpoint.tokenizer, pair, texts_like(at), n=PAIRS - 1)
        known = max((len(more) + 1) // 2 - 1, 0)
        return circuit.find_circuit(look.model, [pair, *more[:known]], more[known:])

    found = kept_here.get(("circuit", pair), search, owner=look.model)
    places = circuit.places_of(found, look.ids, look.pattern)
    return circuit_picture(found, places), circuit_result(found, places, *answers_of(at, pair))
