"""Interventions: what patching, steering and circuits found, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..interventions.circuit import NAMED_FROM, Circuit, Node
from ..interventions.patching import Donor, PatchMap
from ..interventions.steering import SteeringCurve
from .heads import HABIT_NAMES
from .numbers import listed, percent, signed
from .result import Result

PART_NAMES = {"residual": "Residual stream", "head": "Heads", "mlp": "MLPs", "expert": "Experts"}
"""Of `interventions.patching.PARTS`."""
DONOR_NAMES = {
    Donor.OTHER: "the other prompt's value",
    Donor.ZERO: "zero",
    Donor.MEAN: "its average",
    Donor.RESAMPLE: "values of other texts",
}
ASSUMPTIONS = {
    Donor.OTHER: "This assumes that the prompts differ only in what you ask about.",
    Donor.ZERO: "This assumes that later layers read zero as no information. They never saw it in training.",
    Donor.MEAN: "This assumes that the average says nothing about this prompt. Perhaps no text produces it.",
    Donor.RESAMPLE: "This assumes that the other texts share nothing with this prompt.",
}
"""What a donor takes for granted."""
PLACE_NAMES = {"previous": "previous token", "induction": "after a copy", "duplicate": "earlier copy",
               "first": "first token", "itself": "current token"}  # fmt: skip
"""Where a head puts most of its weight, as `interventions.circuit.places_of` finds it. Roles need more than that."""
FEEDS = 0.05
"""A head feeds one of the main path if at least this share of the logit difference is lost without the link."""
LOST = "A part or link with −30 %: without it, 30 % of the logit difference is lost."
MEASURED = "These shares do not add up: parts are measured within the circuit, links within the whole model."
ANOTHER_QUESTION = (
    "“Largest effect” above removes a head altogether. "
    "Here, parts take the other prompt's values, so only what differs between the prompts counts."
)
NAMED = f"A head's second line says where it puts over {100 * NAMED_FROM:.0f} % of its weight, on many texts."
TINY = 0.2
"""Nats between the two logit differences below which a share of the way from one to the other says little."""
ALIKE = 0.9
"""Share of the strongest effect from which a cell looks the same on the map."""
DIRECT = "A direct effect skips all later layers, so only the last token can have one."


def part_name(part: str, layer: int, index: int | None) -> str:
    """One row of a map, to be read within a sentence."""
    if part == "head":
        return f"head {layer}.{index}"
    return f"expert {index} of layer {layer}" if part == "expert" else f"layer {layer}"


def patched_result(
    found: PatchMap, tokens: list[str], answers: tuple[str, str], donor: Donor, direct: bool, part: slice = slice(None)
) -> Result:
    """The strongest cell of a map; `tokens` of the prompt, of which `part` is shown, `answers` of the two prompts."""
    row, place = found.strongest_in(part)
    shown = " in view" if (row, place) != found.strongest_in() else ""
    where = f"{part_name(found.part, *found.rows[row])} at token {place} “{tokens[place]}”"
    effect, (answer, foil) = found.effects[row, place], answers
    leads = [(answer, foil) if gap >= 0 else (foil, answer) for gap in (found.here, found.other)]
    runs = f"Without the patch, “{leads[0][0]}” leads “{leads[0][1]}” by {signed(abs(found.here))}. "
    runs += f"In the other prompt, “{leads[1][0]}” leads “{leads[1][1]}” by {signed(abs(found.other))}."
    details = " ".join(filter(None, (runs, ASSUMPTIONS[donor], DIRECT if direct else "")))
    if abs(effect) < 0.005:
        return Result(f"No {'cell in view' if shown else 'single cell'} changes the answer.", "", details)
    way, to = found.shares[row, place], ""
    if leads[0] == leads[1] or abs(found.other - found.here) < TINY:
        details = f"Both prompts predict almost the same: choose prompts with different continuations. {details}"
    elif way > 0:
        to = f", {percent(way, 0)} of the way to “{foil}”"
    alike = int((abs(found.effects[:, part]) >= ALIKE * abs(effect)).sum()) - 1
    near = f" {alike} other cell{'s do' if alike > 1 else ' does'} nearly as much." if alike else ""
    moves = f"It moves the logit difference by {signed(effect)}{to}.{near}"
    return Result(f"Patching {where} matters most{shown}.", moves, details)


def kept_words(part: str, layer: int, index: int | None, place: int, tokens: Sequence[str]) -> str:
    """A patch that is kept at one of the prompt's tokens, briefly."""
    name = {"residual": "residual stream, ", "mlp": "MLP, "}.get(part, "") + part_name(part, layer, index)
    return f"{name}, at token {place} “{tokens[place]}”"


def steered_result(curve: SteeringCurve, answers: tuple[str, str]) -> Result:
    """What the largest strength does, and what it costs."""
    middle = min(range(len(curve.strengths)), key=lambda i: abs(curve.strengths[i]))
    gained = curve.effects[-1] - curve.effects[middle]
    cost = curve.losses[-1] - curve.losses[middle]
    if abs(gained) < 0.005:
        changes = f"The validation loss changes by {signed(cost, 3, plus=True)}."
        return Result("This direction hardly changes the answer.", changes, "Try the last layer, or other prompts.")
    verb, outcome = ("raises", "gains on") if gained > 0 else ("lowers", "loses ground to")
    if curve.effects[middle] < 0 < curve.effects[-1]:
        outcome = "overtakes"
    details = "At strength 1, the added vector is as long as the residual stream."
    strength = signed(curve.strengths[-1], 1)
    if gained > 0 > curve.effects[-1]:
        return Result(
            f"Steering does not work here: “{answers[1]}” still leads.",
            f"At strength {strength}, “{answers[0]}” gains {signed(gained)} on it. Try another pair.",
            details,
        )
    return Result(
        f"At strength {strength}, “{answers[0]}” {outcome} “{answers[1]}”.",
        f"It {verb} the logit difference by {signed(abs(gained))}. "
        f"The validation loss changes by {signed(cost, 3, plus=True)}.",
        details,
    )


def node_name(node: Node | None) -> str:
    """A part of a circuit; None is the logits."""
    if node is None:
        return "answer"
    return f"MLP {node.layer}" if node.head is None else f"head {node.layer}.{node.head}"


def circuit_result(found: Circuit, places: Mapping[Node, str], answer: str, foil: str) -> Result:
    """The parts that an answer needs most, what they do, and what the circuit keeps; `places` of heads' weight."""
    n = len(found.nodes)
    carry = f"{n} of {found.parts} heads and MLPs {'carries' if n == 1 else 'carry'}"
    needed = [node_name(node) for node in found.most_needed]
    headline = f"“{answer}” depends most on {listed(needed)}." if needed else f"“{answer}” needs no head and no MLP."
    kept = f"{carry} {percent(min(found.kept, 1.0), 0)} of the logit difference, “{answer}” over “{foil}”."
    if found.fresh is None:
        fresh = "No fresh prompts of this form were clear enough for a check."
    else:
        share = percent(min(max(found.fresh, 0.0), 1.0), 0)
        fresh = f"On {found.fresh_pairs} fresh pair{'s' * (found.fresh_pairs != 1)} of prompts it is {share}."
    details = (LOST, MEASURED, NAMED if places else "", ANOTHER_QUESTION)
    number = " ".join(filter(None, (_reading(found, places, answer), kept, fresh)))
    return Result(headline, number, " ".join(filter(None, details)))


def _reading(found: Circuit, places: Mapping[Node, str], answer: str) -> str:
    """Where the heads of the main path look, the MLP that turns that into the answer, and the heads that feed them."""
    main = found.main_path
    heads = [node for node in main if node in places]
    fed = {edge.sender for edge in found.edges if edge.receiver in heads and edge.share >= FEEDS}
    said = [f"{node_name(node)} attends to {HABIT_NAMES[places[node]]}" for node in heads]
    if len(main) > 1 and main[-1].head is None and main[-2] in heads:
        said.append(f"{node_name(main[-1])} turns that into “{answer}”")
    helping = [node for node in found.nodes if node in places and node in fed and node not in heads]
    said += [f"{node_name(node)} helps: it attends to {HABIT_NAMES[places[node]]}" for node in helping]
    return " ".join(f"{each[0].upper()}{each[1:]}." for each in said)
