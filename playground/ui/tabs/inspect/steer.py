"""Steer what the model writes: a direction from two sets of prompts, added while it reads and writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from ....figures.interventions import steering_picture
from ....interventions.pairs import fresh_pairs
from ....interventions.patching import Pair, pair_of
from ....interventions.steering import (
    SIDE_BY_SIDE,
    TRIED,
    Setting,
    difference_of_means,
    steering_curve,
    steering_tap,
    suggested_setting,
)
from ....words.interventions import steered_result
from ....words.numbers import signed
from ....words.result import Result
from ...chart import chart_place
from ...panel import Slot, choice, slot
from .pairs import (
    PAIRS,
    answers_of,
    cards,
    check_size,
    ideas,
    kept_here,
    lines_of,
    pair_here,
    pairs_of,
    read,
    suggested_other,
    text_of,
    texts_like,
    with_headline,
)
from .selection import At
from .validation import held_out

STRENGTHS, A_SIDE = 9, 4
STRONGEST = 2.0
SETTING_TOKENS = 512
"""Tokens of held-out text on which each layer and strength is tried."""

_AREA = '<label class="field-label grow">{label}<textarea name="{name}" rows="2" dir="auto"></textarea></label>'
TEMPLATE = f"""<details class="fold" data-fold="steer"><summary>Steer what the model writes</summary>
<div class="card stack">{slot("steer-ideas", class_="line")}
<div class="stack" data-if="other">
<div class="line">{_AREA.format(label="Towards", name="towards")}{_AREA.format(label="Away from", name="away")}</div>
<div class="line">{slot("steer-layer")}<label class="field-label temperature">Strength
<input type="range" name="strength" min="0" max="{STRONGEST:g}" step="0.1"><output data-of="strength"></output></label>
</div>
{slot("steer-curve-headline")}{chart_place("steer-curve", height=280, save_name="steering")}
{slot("steer-texts", class_="in-a-row")}</div></div></details>"""


def opening(at: At) -> dict[str, Any]:
    """What the selection becomes where one of these parts was just opened: a second prompt, and what to steer with."""
    c = at.chosen
    if not (c.patch or c.steer or c.circuit):
        return {}
    if c.other is None:
        return {"other": suggested_other(at)}
    if not c.other:
        return {}
    moved: dict[str, Any] = {}
    if c.towards is None:
        moved |= dict(zip(("towards", "away"), _suggested_sides(at, c.other)))
    elif c.steer and (c.steer_layer is None or not 0 <= c.steer_layer < at.look.config.n_layers):
        setting = _setting(at, c.prompt, c.other, c.towards, c.away)
        moved |= {"steer_layer": setting.layer, "strength": setting.strength}
    return moved


def _suggested_sides(at: At, other: str) -> tuple[str, str]:
    """What to steer towards and away from: prompts like these two, or like a pair that suits the model."""
    pairs = pairs_of(at)
    if not pairs:
        return "", ""
    try:
        return _sides(at, pair_of(at.look.model, at.look.ids, read(at, other)))
    except ValueError:
        return _sides(at, pairs[0])


def _sides(at: At, pair: Pair) -> tuple[str, str]:
    """Prompts like these two, one a line: those with the other one's answer, and those with the first one's.

    Of longer texts, each line stands for its text where it is all that differs.
    """
    more = fresh_pairs(at.look.model, at.look.checkpoint.tokenizer, pair, texts_like(at), n=PAIRS)
    prompts = [each for one in (pair, *more) for each in ((one.ids, one.answer), (one.other, one.foil))]
    last = [(text_of(at, ids).rpartition("\n")[2], said) for ids, said in prompts]
    both = [dict.fromkeys(line for line, said in last if said == each and line) for each in (pair.foil, pair.answer)]
    towards, away = ([line for line in side if line not in other][:A_SIDE] for side, other in (both, both[::-1]))
    return "\n".join(towards), "\n".join(away)


def _setting(at: At, prompt: str, other: str, towards: str, away: str) -> Setting:
    """What steering begins with: measured, or the last layer where that is not possible."""
    look = at.look

    def find() -> Setting:
        pair = pair_of(look.model, *(read(at, text) for text in (prompt, other)))
        judged, sides = held_out(at.page, look, SETTING_TOKENS), (lines_of(at, towards), lines_of(at, away))
        windows = judged.inputs, judged.targets
        return suggested_setting(look.model, *sides, pair.ids, (pair.foil, pair.answer), windows)

    try:
        check_size(at, 8 * SETTING_TOKENS * look.config.n_layers, "this")
        return kept_here.get(("setting", prompt, other, towards, away), find, owner=look.model)
    except ValueError:  # what is wrong is said where it is drawn
        return Setting(False, 0.0, look.config.n_layers - 1, TRIED[0])


def slots(at: At) -> dict[str, Slot]:
    """The slots of the curve and of the texts at five strengths; empty while their folds are closed."""
    c = at.chosen
    if not c.steer:
        return {}
    about = (*at.about, c.other, c.towards, c.away, c.steer_layer, c.strength)
    layers = {str(n): str(n) for n in range(at.look.config.n_layers)}
    suggested = {"steer-ideas": ideas(at)}
    if not c.other:
        return suggested
    return {
        **suggested,
        "steer-layer": Slot((len(layers), c.steer_layer), lambda: choice("steer_layer", "Layer", layers)),
        **with_headline("steer-curve", about, lambda: _curve(at)),
        "steer-texts": Slot(about, lambda: _side_by_side(at), slow=True),
    }


def _strength(at: At) -> float:
    return max(0.0, min(STRONGEST, at.chosen.strength))


def _direction(at: At) -> torch.Tensor:
    look, c = at.look, at.chosen
    check_size(at, 2 * PAIRS * look.length, "steering")
    sides = lines_of(at, c.towards), lines_of(at, c.away)
    made = lambda: difference_of_means(look.model, *sides, c.steer_layer)  # noqa: E731
    return kept_here.get(("direction", c.towards, c.away, c.steer_layer), made, owner=look.model)


def _curve(at: At) -> tuple[dict[str, Any], Result]:
    look, judged, pair = at.look, held_out(at.page, at.look), pair_here(at)
    check_size(at, STRENGTHS * judged.inputs.numel(), "this curve")
    most = _strength(at) or 1.0
    strengths = [most * (2 * i / (STRENGTHS - 1) - 1) for i in range(STRENGTHS)]
    windows = judged.inputs, judged.targets
    answers = pair.foil, pair.answer  # the suggested direction leads to the other prompt's
    direction, layer = _direction(at), at.chosen.steer_layer
    measure = lambda: steering_curve(look.model, direction, layer, strengths, look.ids, answers, windows)  # noqa: E731
    key = "curve", at.chosen.towards, at.chosen.away, layer, most, pair
    curve = kept_here.get(key, measure, owner=look.model)
    said = answers_of(at, pair)[::-1]
    words = steered_result(curve, said)
    words = replace(words, details=f"{words.details} Measured on {judged.words}.".strip())
    return steering_picture(curve, *said), words


def _side_by_side(at: At) -> str:
    direction, layer = _direction(at), at.chosen.steer_layer
    strengths = dict.fromkeys(part * _strength(at) for part in SIDE_BY_SIDE)
    taps = {f"Strength {signed(s, plus=bool(s))}": steering_tap(at.look.model, direction, layer, s) for s in strengths}
    return cards(at, taps)
