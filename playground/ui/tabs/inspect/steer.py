"""Steer what the model writes: a direction from two sets of prompts, added while it reads and writes."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from ....figures.interventions import steering_picture
from ....figures.wire import shortened
from ....inspection import Look
from ....inspection import look as look_at
from ....interventions.pairs import ends_a_word, word_with
from ....interventions.patching import Pair
from ....interventions.steering import (
    STRENGTHS,
    TRIED,
    Setting,
    difference_of_means,
    sides_answers,
    steering_curve,
    steering_tap,
    suggested_setting,
)
from ....words.interventions import example_words, steered_result
from ....words.result import Result
from ...chart import chart_place
from ...panel import Slot, choice, slot
from .pairs import (
    PAIRS,
    cards,
    changed_words,
    check_size,
    kept_here,
    lines_of,
    pair_chips,
    pairs_of,
    read,
    text_of,
    with_headline,
)
from .selection import At
from .validation import held_out

SETTING_TOKENS, SHOWN = 512, 100
"""Tokens of held-out text on which each layer and strength is tried; characters of the prompt that are repeated."""

_NONE = "No ready-made example suits this model. Type two prompts under “Patch from another prompt”."
_AREA = (
    '<label class="field-label grow">{label}'
    '<textarea name="{name}" rows="2" dir="auto" data-resets="steered steer_on"></textarea></label>'
)
TEMPLATE = f"""<details class="fold" data-fold="steer"><summary>Steer what the model writes</summary>
<div class="card stack">{slot("steer-ideas", class_="line")}
<div class="stack" data-if="steer_layer">{slot("steer-added", tag="p", class_="num")}
<label class="field-label wide">Strength <output data-of="strength"></output>0
<input type="range" name="strength" min="0" max="{STRENGTHS[-1]:g}" step="{STRENGTHS[1]:g}">
{STRENGTHS[-1]:g}</label>
{slot("steer-curve-headline")}{slot("steer-texts", class_="stack")}
<details class="stack"><summary>Prompts, layer and curve</summary>
<div class="line">{_AREA.format(label="Towards", name="towards")}{_AREA.format(label="Away from", name="away")}</div>
{slot("steer-layer")}{chart_place("steer-curve", height=280, save_name="steering")}</details></div></div></details>"""


def opening(at: At) -> dict[str, Any]:
    """What the selection becomes where one of these parts was just opened: a second prompt, and what to steer with."""
    c = at.chosen
    if not (c.patch or c.steer or c.circuit):
        return {}
    if not c.other:
        pairs = pairs_of(at) if c.patch or c.circuit else steered_pairs(at)
        other = next((text_of(at, pair.other) for pair in pairs if pair.ids == at.look.ids), "")
        if other != c.other:
            return {"other": other}
    if not c.steer or c.steered in (None, _prompts(at)):
        return {}
    return _steered(at, *_suggested(at))


def _prompts(at: At) -> str:
    """The two prompts for which something is suggested."""
    return f"{at.chosen.prompt}\n{at.chosen.other}"


def _steered(at: At, ids: tuple[int, ...], towards: str | None, away: str | None) -> dict[str, Any]:
    """The selection that steers these tokens, from the layer and with the strength to begin with."""
    on = None if ids == at.look.ids else text_of(at, ids)
    sides = {"towards": towards, "away": away, "steered": _prompts(at), "steer_on": on, "steer_layer": None}
    if towards is None:
        return sides
    setting = _setting(at, ids, towards, away)
    return sides | {"steer_layer": setting.layer, "strength": setting.strength}


def _suggested(at: At) -> tuple[tuple[int, ...], str | None, str | None]:
    """The prompt to steer, towards and away: the two prompts if steering works with them, else a pair that works.

    Where no pair works at all, the two prompts.
    """
    here, other = at.look.ids, at.chosen.other
    own = (here, _line(other), _line(text_of(at, here))) if other else (here, None, None)
    if other and _setting(at, *own).works:
        return own
    return next(((pair.ids, *_sides_of(at, pair)) for pair in steered_pairs(at)), own)


def _sides_of(at: At, pair: Pair) -> tuple[str, str]:
    return _line(text_of(at, pair.other)), _line(text_of(at, pair.ids))


def _line(text: str) -> str:
    """The last line, which stands for its text: each line of a side is a prompt."""
    return text.rpartition("\n")[2]


def steered_pairs(at: At) -> list[Pair]:
    """The pairs of whole words on which steering works, each in a direction in which the second one's answer leads."""

    def works(pair: Pair) -> bool:
        whole = ends_a_word(at.look.checkpoint.tokenizer, pair)
        return whole and _setting(at, pair.ids, *_sides_of(at, pair)).works

    def find() -> list[Pair]:
        both = ((pair, Pair(pair.other, pair.ids, pair.foil, pair.answer)) for pair in pairs_of(at))
        return [each for pair in both if (each := next(filter(works, pair), None))]

    return kept_here.get("steered", find, owner=at.look.model)


def _setting(at: At, ids: tuple[int, ...], towards: str, away: str) -> Setting:
    """What steering after these tokens begins with: measured, or the last layer where that is not possible."""
    look = at.look

    def find() -> Setting:
        sides, judged = _sides(at, towards, away), held_out(at.page, look, SETTING_TOKENS)
        answers = sides_answers(look.model, *sides)
        return suggested_setting(look.model, *sides, ids, answers, (judged.inputs, judged.targets))

    try:
        check_size(at, 8 * SETTING_TOKENS * look.config.n_layers, "this")
        return kept_here.get(("setting", ids, towards, away), find, owner=look.model)
    except ValueError:  # what is wrong is said where it is drawn
        return Setting(False, 0.0, look.config.n_layers - 1, TRIED[0])


def slots(at: At) -> dict[str, Slot]:
    """The slots of the curve and of the texts at five strengths; none while the part is closed."""
    c = at.chosen
    if not c.steer:
        return {}
    suggested = {"steer-ideas": Slot((*at.about, c.prompt, c.other), lambda: _ideas(at), slow=True)}
    if c.steer_layer is None:
        return suggested
    on = replace(at, look=_look(at, c.steer_on)) if c.steer_on else at  # `suggested` is about the visitor's own prompt
    about = (*on.about, c.towards, c.away, c.steer_layer, c.strength)
    layers = {str(n): str(n) for n in range(at.look.config.n_layers)}
    return {
        **suggested,
        "steer-added": Slot((c.prompt, c.towards, c.away, c.steer_on), lambda: _added(at)),
        "steer-layer": Slot((len(layers), c.steer_layer), lambda: choice("steer_layer", "Layer", layers)),
        **with_headline("steer-curve", about, lambda: _curve(on)),
        "steer-texts": Slot(about, lambda: _side_by_side(on), slow=True, echoes=True),
    }


def _ideas(at: At) -> str:
    """A button for each example, named by its two answers."""

    def offered(pair: Pair) -> tuple[str, dict[str, Any]]:
        answers = (pair.ids, pair.answer), (pair.other, pair.foil)
        return " → ".join(_word(at.look, *each) for each in answers), _steered(at, pair.ids, *_sides_of(at, pair))

    return pair_chips(at, "Example:", steered_pairs(at), offered, _NONE)


def _added(at: At) -> str:
    """The prompt that is steered, and what is added."""
    prompt = shortened((at.chosen.steer_on or at.chosen.prompt).strip(), SHOWN)
    return html.escape(example_words(prompt, changed_words(at.chosen.towards or "", at.chosen.away or "")))


def _look(at: At, prompt: str) -> Look:
    ids = read(at, prompt)
    return kept_here.get(("look", *ids), lambda: look_at(at.look.checkpoint, ids), owner=at.look.model)


def _sides(at: At, towards: str | None, away: str | None) -> tuple[list[list[int]], list[list[int]]]:
    return lines_of(at, towards), lines_of(at, away)


def _direction(at: At) -> torch.Tensor:
    look, c = at.look, at.chosen
    check_size(at, 2 * PAIRS * look.length, "steering")
    sides = _sides(at, c.towards, c.away)
    made = lambda: difference_of_means(look.model, *sides, c.steer_layer)  # noqa: E731
    return kept_here.get(("direction", c.towards, c.away, c.steer_layer), made, owner=look.model)


def _curve(at: At) -> tuple[dict[str, Any], Result]:
    look, c, judged = at.look, at.chosen, held_out(at.page, at.look)
    check_size(at, len(STRENGTHS) * judged.inputs.numel(), "this curve")
    windows = judged.inputs, judged.targets
    direction, layer = _direction(at), c.steer_layer
    sides = _sides(at, c.towards, c.away)
    answers = sides_answers(look.model, *sides)
    measure = lambda: steering_curve(look.model, direction, layer, STRENGTHS, look.ids, answers, windows)  # noqa: E731
    curve = kept_here.get(("curve", c.towards, c.away, layer, look.ids), measure, owner=look.model)
    tokens = {curve.leaders[-1]: look.ids, answers[1]: sides[1][0], answers[0]: sides[0][0]}
    words = {token: _word(look, ids, token) for token, ids in tokens.items()}
    result = steered_result(curve, answers, words, STRENGTHS.index(_strength(at)))
    measured = f"The loss is measured on {judged.inputs.numel():,} tokens of {judged.words}."
    result = replace(result, details=f"{result.details} {measured}")
    return steering_picture(curve, *(words[token] for token in answers)), result


def _word(look: Look, ids: Sequence[int], token: int) -> str:
    """The word that a token after these ids begins; else the token."""
    tokenizer = look.checkpoint.tokenizer
    known = token < tokenizer.vocab_size
    return (known and word_with(look.model, tokenizer, ids, token)) or look.token_label(token)


def _strength(at: At) -> float:
    """The chosen strength, rounded to a position of the slider."""
    return min(STRENGTHS, key=lambda strength: abs(strength - at.chosen.strength))


def _side_by_side(at: At) -> str:
    direction, layer, chosen = _direction(at), at.chosen.steer_layer, _strength(at)
    nearest = sorted(STRENGTHS[1:], key=lambda strength: abs(strength - chosen))[:4]
    strengths = {f"Strength {s:g}": s for s in (0.0, *sorted(nearest))}
    taps = {name: steering_tap(at.look.model, direction, layer, s) for name, s in strengths.items()}
    few = [name for name, s in strengths.items() if s in (0.0, chosen)]
    return cards(at, taps, few, "Five strengths side by side")
