"""Interventions: what patching, steering and circuits found, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..interventions.circuit import FEEDS, Circuit, Node, Place
from ..interventions.patching import PREDICT_ALIKE, Donor, PatchMap, predict_alike
from ..interventions.steering import BEARABLE, SteeringCurve
from .heads import HABIT_NAMES, token_in_word
from .numbers import listed, percent, share, signed
from .result import Result

PART_NAMES = {"residual": "Residual stream", "head": "Heads", "mlp": "MLPs", "expert": "Experts"}
"""Of `interventions.patching.TAPPED`."""
EFFECT_NAMES = {
    "total": "Total effect",
    "direct": "Direct effect",
}
DONOR_NAMES = {
    Donor.OTHER: "the other prompt's value",
    Donor.ZERO: "zero",
    Donor.MEAN: "its average",
    Donor.RESAMPLE: "values from other texts",
}
ASSUMPTIONS = {
    Donor.OTHER: "This assumes that the prompts differ only in what you ask about.",
    Donor.ZERO: "This assumes that later layers read zero as no information. They never saw it in training.",
    Donor.MEAN: "This assumes that the average says nothing about this prompt. Perhaps no text produces it.",
    Donor.RESAMPLE: "This assumes that the other texts share nothing with this prompt.",
}
"""What a donor takes for granted."""
DIRECT = "A direct effect skips all later layers, so only the last token can have one."
OVERLAP = "The shares need not add up to 100 %, because parts build on each other."
ARROWS = {True: "A wider arrow passes on more.", False: "The links between these parts are not measured."}
LEFT_OUT = "Work that is the same in both prompts does not count."
UNLIKE = "The other prompt differs from yours in many tokens, so this compares more than one thing."
FRESH = "A fresh pair has the same form but different words."
ALIKE = 0.95
"""Share of the strongest effect from which another part at the same token does as much."""
LITTLE = 0.1
"""Share of the way to the other answer below which a patch does not matter much."""
NAMED_AT_MOST = 40
"""Characters of a prompt's words that a sentence names."""


def part_name(part: str, layer: int, index: int | None) -> str:
    """One row of a map, to be read within a sentence."""
    if part == "head":
        return f"head {layer}.{index}"
    if part == "mlp":
        return f"MLP {layer}"
    return f"expert {index} of layer {layer}" if part == "expert" else f"layer {layer}"


def patched_result(found: PatchMap, tokens: list[str], answers: tuple[str, str]) -> Result:
    """The strongest cell of a map; `tokens` of the prompt, `answers` of the two prompts."""
    row, place = found.strongest
    where = f"{part_name(found.part, *found.rows[row])} at token {place} “{tokens[place]}”"
    effect, (answer, foil) = found.effects[row, place], answers
    leads = [(answer, foil) if gap >= 0 else (foil, answer) for gap in (found.here, found.other)]
    runs = f"Without the patch, “{leads[0][0]}” leads “{leads[0][1]}” by {signed(abs(found.here))}. "
    runs += f"In the other prompt, “{leads[1][0]}” leads “{leads[1][1]}” by {signed(abs(found.other))}."
    details = runs
    if abs(effect) < 0.005:
        return Result("No single cell changes the answer.", "", details)
    way, moves = found.shares[row, place], f"It moves the logit difference by {signed(effect)}."
    most = f"Patching {where} matters most."
    if len(found.effects) > 1 and (found.effects[:, place] / effect).min() >= ALIKE:
        most = f"Token {place} “{tokens[place]}” matters most, in every layer."
    if predict_alike(found.here, found.other):
        headline, remedy = PREDICT_ALIKE.split(". ")
        return Result(f"{headline}.", f"{remedy}.", f"{most} {moves} {details}")
    from_to = f"the way from “{answer}” to “{foil}”."
    if abs(way) < LITTLE:
        largest = f"Patching {where} has the largest effect: {percent(way, 0)} of {from_to}"
        return Result("No single part does much.", largest, f"{moves} {details}")
    if way > 0:
        moves += f" The model goes {'all' if way > 0.995 else f'{percent(way, 0)} of'} {from_to}"
    return Result(most, "", f"{moves} {details}")


def assumed_words(donor: Donor, direct: bool) -> str:
    """What a map takes for granted, and what limits a direct one."""
    return f"{ASSUMPTIONS[donor]} {DIRECT * direct}".strip()


def kept_words(cell: Any, tokens: Sequence[str]) -> str:
    """A patch at one of the prompt's tokens, briefly; `cell` has `part`, `layer`, `index` and `place`."""
    name = ("residual stream, " if cell.part == "residual" else "") + part_name(cell.part, cell.layer, cell.index)
    return f"{name}, at token {cell.place} “{tokens[cell.place]}”"


def expected_words(before: tuple[str, float], after: tuple[str, float], pair: Sequence[str]) -> str:
    """The likeliest next token without a patch and with it, as (token, probability); `pair` are the two answers."""
    (was, p), (now, q) = before, after
    third, leader = "" if now in pair else ", a third token,", "it" if was == now else f"“{was}”"
    return f"With the patch, “{now}”{third} leads with {share(q)}. Before, {leader} had {share(p)}."


def example_words(prompt: str, changed: Sequence[str]) -> str:
    """The prompt that is steered, and what steering adds, from the words in which its two prompts differ."""
    short = all(0 < len(each) <= NAMED_AT_MOST for each in changed)
    towards, away = [f"“{each}”" for each in changed] if short else ["one prompt", "the other"]
    return f"Prompt: “{prompt}” Added at every token: the state for {towards} minus that for {away}."


def steered_result(curve: SteeringCurve, answers: tuple[int, int], words: Mapping[int, str], chosen: int) -> Result:
    """From which strength the wanted answer leads, and what the chosen strength costs.

    Args:
        curve: strengths from 0 on.
        answers: tokens: the wanted one, and the other.
        words: the words that begin with these tokens, and with the last leader.
        chosen: index of a strength.
    """
    wanted, other = (f"“{words[answer]}”" for answer in answers)
    details = f"{wanted} leads if its first token is the likeliest. "
    details += "At strength 1, the added vector is as long as the residual stream."
    if curve.leaders[0] == answers[0]:
        return Result(f"{wanted} leads even without steering.", "", details)
    leads = [leader == answers[0] for leader in curve.leaders]
    if not any(leads):
        still = f"“{words[curve.leaders[-1]]}” {'still ' * (curve.leaders[-1] == curve.leaders[0])}leads"
        gain, most = signed(curve.effects[-1] - curve.effects[0]), f"{curve.strengths[-1]:g}"
        blank = not words[curve.leaders[-1]].strip(" ␣⏎")
        advice = "End your prompt with a space." if blank else "Try another pair."
        gained = f"At strength {most}, the logit of {wanted} gains {gain} on that of {other}. {advice}"
        return Result(f"Steering does not work here: {still}.", gained, details)
    first = leads.index(True)
    cost, (was, now) = curve.losses[chosen] - curve.losses[0], (f"{curve.losses[i]:.3f}" for i in (0, chosen))
    change = f"stays at {was}" if was == now else f"{'falls' if cost < 0 else 'rises'} from {was} to {now}"
    not_yet = f"{wanted} does not lead, and " * (not leads[chosen])
    number = f"At strength {curve.strengths[chosen]:g}, {not_yet}the validation loss {change}."
    if cost > min(2 * BEARABLE, curve.losses[0]):
        number += " The text may fall apart."
    return Result(f"{wanted} takes the lead at strength {curve.strengths[first]:g}.", number, details)


def node_name(node: Node) -> str:
    """A part of a circuit."""
    return f"MLP {node.layer}" if node.head is None else f"head {node.layer}.{node.head}"


def circuit_result(
    found: Circuit, places: Mapping[Node, Place], tokens: Sequence[str], answer: str, foil: str
) -> Result:
    """The parts that are drawn, whether a circuit carries fresh pairs, and where its heads look (`places`)."""
    if not found.nodes:
        return Result(f"“{answer}” needs no head and no MLP.", "", LEFT_OUT)
    said = _reading(found, places, tokens, answer), _kept(found, answer), LEFT_OUT, OVERLAP, ARROWS[bool(found.edges)]
    n = len(found.drawn)
    headline = f"{n} of {found.parts} parts {'does' if n == 1 else 'do'} most to put “{answer}” ahead of “{foil}”."
    return Result(headline, "" if found.holds else "Other prompts may need other parts.", " ".join(filter(None, said)))


def boxes_words(other: str) -> str:
    """The numbers in the picture of a circuit."""
    return f"In each box: the share of the lead that is lost if only this part gets “{other}”."


def circuit_prompts(changed: int, length: int) -> str:
    """Where to change the prompt that all parts outside a circuit get; in so many tokens it differs from the first."""
    unlike = f" {UNLIKE}" * (changed > length / 2)
    return f"You can change the other prompt under “Patch from another prompt”.{unlike}"


def _kept(found: Circuit, answer: str) -> str:
    """The share of the lead that all parts of a circuit keep, on the prompt and on fresh pairs."""
    n, left_out = len(found.nodes), len(found.nodes) - len(found.drawn)
    keeps = percent(min(found.kept, 1.0), 0)
    words = f"If only {n} part{' gets' if n == 1 else 's get'} your prompt, “{answer}” keeps {keeps} of its lead."
    if left_out:
        words += f" The picture leaves out {left_out} of them, under {percent(FEEDS, 0)} each."
    if not found.fresh:
        return f"{words} No fresh pair was clear enough for a check."
    ends = [percent(min(max(end(found.fresh), 0.0), 1.0), 0) for end in (min, max)]
    pairs = f"{len(found.fresh)} fresh pair{'s' * (len(found.fresh) > 1)}"
    return f"{words} On {pairs}, the circuit keeps {' to '.join(dict.fromkeys(ends))}. {FRESH}"


def _reading(found: Circuit, places: Mapping[Node, Place], tokens: Sequence[str], answer: str) -> str:
    """Where heads look, the most needed first; what feeds them; and the MLP that turns that into the answer."""
    main, said = found.main_path, []
    for node in sorted(places, key=lambda node: -found.lost[node]):
        weight = percent(places[node].weight, 0)
        said.append(f"{node_name(node).capitalize()} gives {weight} of its attention to {_key(places[node], tokens)}")
        if (feeding := found.feeding([node])) and node in main:
            said.append(f"Input for this comes from {listed([node_name(each) for each in feeding])}")
        if len(main) > 1 and main[-1].head is None and main[-2] == node:
            said.append(f"MLP {main[-1].layer} turns that into “{answer}”")
    return " ".join(f"{each}." for each in said)


def _key(place: Place, tokens: Sequence[str]) -> str:
    """The token to which a head attends, and what it is to the one that attends."""
    return token_in_word(tokens, place.key) + (f" ({HABIT_NAMES[place.habit]})" if place.habit else "")
