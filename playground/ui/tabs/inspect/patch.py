"""Patch, steer, find the circuit: two prompts that differ in one word, and what carries the difference."""

from __future__ import annotations

import difflib
import functools
import html
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ....engine import SamplingConfig, generate
from ....figures.interventions import circuit_picture, patch_picture, steering_picture
from ....inspection.edits import edits_tap
from ....interventions import (
    Donor,
    Pair,
    PatchMap,
    circuit,
    difference_of_means,
    find_circuit,
    fresh_pairs,
    pair_of,
    patch_map,
    suggested_pairs,
)
from ....interventions.pairs import SEARCHED
from ....interventions.patching import PARTS, donated, passes_of, patch_from
from ....interventions.steering import SIDE_BY_SIDE, TRIED, Setting, steering_curve, steering_tap, suggested_setting
from ....kept import Kept
from ....model import Tap
from ....processes import in_decoding_threads
from ....service.limits import HEAD_TESTS_FLOPS, PATCHES
from ....words.interventions import DONOR_NAMES, PART_NAMES, circuit_result, kept_words, patched_result, steered_result
from ....words.numbers import signed
from ....words.result import Result
from ...chart import chart_place, show
from ...clicks import cell_of
from ...panel import Slot, choice, move_button, slot, switch
from ...prompts import read_prompt
from .drawn import window, window_words
from .selection import MODEL, At
from .tested import roles_of, texts_of
from .validation import held_out

NEW_TOKENS, PAIRS, STRENGTHS, A_SIDE = 60, 16, 9, 4
STRONGEST = 2.0
SETTING_TOKENS = 512
"""Tokens of held-out text on which each layer and strength is tried."""
ENOUGH_TEXTS, TEXT_TOKENS = 8, 8192
"""Texts from which the model needs to write none itself; tokens of the text that is read."""
RULES = SamplingConfig(temperature=0.5, seed=1)
_PATHS = {"total": "All paths", "direct": "Direct path"}

_AREA = '<label class="field-label grow">{label}<textarea name="{name}" rows="2" dir="auto"></textarea></label>'
TEMPLATE = f"""<details class="fold" data-fold="patch"><summary>Patch from another prompt</summary>
<div class="card stack"><label class="quiet">Other prompt
<input type="text" name="other" data-resets="kept" dir="auto" autocomplete="off" spellcheck="false"></label>
{slot("pair-ideas", class_="chips", data_arrows="")}
<div class="line">{switch("part", "Part", PART_NAMES)}{switch("path", "Effect", _PATHS)}
{choice("donor", "Replace with", {donor.value: text for donor, text in DONOR_NAMES.items()})}</div>
{slot("patch-map-headline", tag="h3")}{chart_place("patch-map", height=300, save_name="patching", clickable=True)}
{slot("patch-kept")}</div></details>
<details class="fold" data-fold="steer"><summary>Steer what the model writes</summary><div class="card stack">
<div class="line">{_AREA.format(label="Towards", name="towards")}{_AREA.format(label="Away from", name="away")}</div>
<div class="line">{slot("steer-layer")}<label class="field-label temperature">Strength
<input type="range" name="strength" min="0" max="{STRONGEST:g}" step="0.1"><output data-of="strength"></output></label>
</div>
{slot("steer-curve-headline", tag="h3")}{chart_place("steer-curve", height=280, save_name="steering")}
{slot("steer-texts", class_="in-a-row")}</div></details>
<details class="fold" data-fold="circuit"><summary>Find the circuit</summary><div class="card stack">
{slot("circuit-headline", tag="h3")}{chart_place("circuit", height=400, save_name="circuit")}</div></details>"""

_kept = Kept(entries=256, megabytes=64)


def opening(at: At) -> dict[str, Any]:
    """What the selection becomes where one of these parts was just opened: two prompts to begin with."""
    c = at.chosen
    if not (c.patch or c.steer or c.circuit):
        return {}
    moved: dict[str, Any] = {}
    pairs = _pairs(at) if c.other is None or c.towards is None else []
    here = None
    if c.other is None:
        here = next((pair for pair in pairs if pair.ids == at.look.ids), None)
        if here is None and pairs and not c.typed:
            here, moved["prompt"] = pairs[0], _text(at, pairs[0].ids)
            moved |= {"query": None, "key": None}
        moved["other"] = _text(at, here.other) if here else ""
    if c.towards is None:
        sides = _sides(at, here or pairs[0]) if here or pairs else ("", "")
        moved |= {"towards": sides[0], "away": sides[1]}
    elif c.steer and (c.steer_layer is None or not 0 <= c.steer_layer < at.look.config.n_layers):
        pair = c.prompt, c.other, c.towards, c.away
        setting = _setting(at, *pair)
        if not setting.turns and not c.typed and not c.kept:  # from the other prompt it may be possible
            back = c.other, c.prompt, c.away, c.towards
            if (other := _setting(at, *back)).turns:
                setting, moved = other, dict(zip(("prompt", "other", "towards", "away"), back)) | {"query": None}
        moved |= {"steer_layer": setting.layer, "strength": setting.strength}
    return moved


def _sides(at: At, pair: Pair) -> tuple[str, str]:
    """Prompts like these two, one a line: those with the other one's answer, and those with the first one's.

    Of longer texts, each line stands for its text where it is all that differs.
    """
    more = fresh_pairs(at.look.model, at.look.checkpoint.tokenizer, pair, _texts(at), n=PAIRS)
    prompts = [each for one in (pair, *more) for each in ((one.ids, one.answer), (one.other, one.foil))]
    last = [(_text(at, ids).rpartition("\n")[2], said) for ids, said in prompts]
    both = [dict.fromkeys(line for line, said in last if said == each and line) for each in (pair.foil, pair.answer)]
    towards, away = ([line for line in side if line not in other][:A_SIDE] for side, other in (both, both[::-1]))
    return "\n".join(towards), "\n".join(away)


def _setting(at: At, prompt: str, other: str, towards: str, away: str) -> Setting:
    """What steering begins with: measured, or the last layer where that is not possible."""
    look = at.look

    def find() -> Setting:
        pair = pair_of(look.model, *(_read(at, text) for text in (prompt, other)))
        judged, sides = held_out(at.page, look, SETTING_TOKENS), (_lines(at, towards), _lines(at, away))
        windows = judged.inputs, judged.targets
        return suggested_setting(look.model, *sides, pair.ids, (pair.foil, pair.answer), windows)

    try:
        _check_size(at, 8 * SETTING_TOKENS * look.config.n_layers, "this")
        return _kept.get(("setting", prompt, other, towards, away), find, owner=look.model)
    except ValueError:  # what is wrong is said where it is drawn
        return Setting(False, 0.0, look.config.n_layers - 1, TRIED[-1])


def _read(at: At, text: str) -> list[int]:
    return read_prompt(at.page, at.look.checkpoint, text)[0][-at.look.config.context_length :]


def _lines(at: At, text: str | None) -> list[list[int]]:
    """The prompts of one side, one a line."""
    return [_read(at, line) for line in (text or "").split("\n") if line.strip()][:PAIRS]


def slots(at: At) -> dict[str, Slot]:
    """What is unfolded of it."""
    c, shown = at.chosen, {}
    if c.patch:
        about = (*at.about, c.other, c.part, c.donor, c.path, c.kept)
        shown = {
            "pair-ideas": Slot(at.about[:3], lambda: _ideas(at), slow=True),
            **_drawn("patch-map", (*about, c.query), lambda: _map(at)),
            "patch-kept": Slot(about, lambda: _continued(at), slow=True),
        }
    if c.steer:
        about = (*at.about, c.other, c.towards, c.away, c.steer_layer, c.strength)
        layers = {str(n): str(n) for n in range(at.look.config.n_layers)}
        shown["steer-layer"] = Slot((len(layers), c.steer_layer), lambda: choice("steer_layer", "Layer", layers))
        shown |= _drawn("steer-curve", about, lambda: _curve(at))
        shown["steer-texts"] = Slot(about, lambda: _side_by_side(at), slow=True)
    if c.circuit:
        shown |= _drawn("circuit", (*at.about, c.other), lambda: _graph(at))
    return shown


def _drawn(name: str, about: tuple[Any, ...], make: Callable[[], tuple[dict[str, Any], Result]]) -> dict[str, Slot]:
    """Two slots: a chart, and above it the headline of what it shows."""
    make = functools.cache(make)

    def headline() -> str:
        try:
            return html.escape(make()[1].headline)
        except ValueError:  # the chart says why
            return ""

    def chart() -> dict[str, Any] | None:
        figure, result = make()
        return show(figure, str(replace(result, headline="")), layer=None, head=None)

    return {f"{name}-headline": Slot(about, headline, slow=True), name: Slot(about, chart, slow=True)}


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A cell of the map is a patch to keep, or to take back."""
    if click.get("slot") != "patch-map":
        return None
    found, part = _patched(at), window(at.look.length, at.chosen.query)
    row, column = cell_of(click, rows=len(found.rows), columns=part.stop - part.start)
    layer, index = found.rows[row]
    cell = {"part": found.part, "layer": layer, "index": index, "place": part.start + column}
    rest = [each for each in at.chosen.kept if each != cell]
    if len(rest) == len(at.chosen.kept):
        if len(rest) >= PATCHES:
            raise ValueError(f"{PATCHES} patches are the most. Take one back first")
        rest.append(cell)
    return {"kept": tuple(rest)}


# ---- pairs -----------------------------------------------------------------------------------------------------------


def _text(at: At, ids: tuple[int, ...]) -> str:
    return at.look.checkpoint.tokenizer.decode(ids)


def _check_size(at: At, tokens: int, what: str) -> None:
    """Raise ValueError for a worked example, and where reading so many tokens would take too long."""
    if at.chosen.subject != MODEL:
        raise ValueError("This example was written by hand for one prompt. Choose a trained model under “Look into”")
    if tokens * at.look.config.flops_per_token() > HEAD_TESTS_FLOPS:
        raise ValueError(f"This model is too large for {what} here. Choose a smaller one, or a shorter prompt")


def _texts(at: At) -> torch.Tensor:
    """Windows (N, T) of text like that of training."""

    def read() -> torch.Tensor:
        judged = held_out(at.page, at.look, TEXT_TOKENS)
        written = texts_of(at.look, None)[0] if judged.stand_in or len(judged.inputs) < ENOUGH_TEXTS else None
        if judged.stand_in:
            return written
        texts = texts_of(at.look, judged)[0]
        if written is None:
            return texts
        T = min(texts.shape[1], written.shape[1])
        return torch.cat((texts[:, :T], written[:, :T]))

    return _kept.get("texts", read, owner=at.look.model)


def _pairs(at: At) -> list[Pair]:
    """Pairs that suit the model; none for a model too large to look for them."""
    try:
        _check_size(at, SEARCHED, "pairs")
        find = lambda: suggested_pairs(at.look.model, at.look.checkpoint.tokenizer, _texts(at))  # noqa: E731
        return _kept.get("pairs", find, owner=at.look.model)
    except ValueError:
        return []


def _ideas(at: At) -> str:
    """A button for every suggested pair."""
    return "".join(
        move_button(
            _changes(_text(at, pair.ids), _text(at, pair.other)),
            {"prompt": _text(at, pair.ids), "other": _text(at, pair.other), "query": None, "key": None, "kept": []},
            kind="chip",
            dir="auto",
        )
        for pair in _pairs(at)
    )


def _changes(one: str, other: str) -> str:
    """Both prompts in one line: their common text, and `[this → that]`."""
    words, others = one.replace("\n", " ⏎ ").split(" "), other.replace("\n", " ⏎ ").split(" ")
    parts = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        same = " ".join(words[a:b])
        parts.append(same if kind == "equal" else f"[{same} → {' '.join(others[c:d])}]")
    return " ".join(parts)


def _pair(at: At) -> Pair:
    """The two prompts. Raises ValueError where they make no pair."""
    _check_size(at, 2 * at.look.length, "two prompts")
    if not at.chosen.other:
        raise ValueError("Type a second prompt that differs in one word")
    other = _read(at, at.chosen.other)
    key = "pair", at.look.ids, tuple(other)
    return _kept.get(key, lambda: pair_of(at.look.model, at.look.ids, other), owner=at.look.model)


def _answers(at: At, pair: Pair) -> tuple[str, str]:
    return at.look.token_label(pair.answer), at.look.token_label(pair.foil)


# ---- patching --------------------------------------------------------------------------------------------------------


def _patched(at: At) -> PatchMap:
    c, look, pair = at.chosen, at.look, _pair(at)
    part = c.part if c.part in PARTS else "residual"
    donor, direct = _donor(at), c.path == "direct"
    _check_size(at, look.length * passes_of(look.config, part, look.length), "this map")

    def patch() -> PatchMap:
        return patch_map(look.model, pair, part, donor, texts=_texts_for(at, donor), direct=direct)

    return _kept.get(("map", pair, part, donor, direct), patch, owner=look.model)


def _donor(at: At) -> Donor:
    return Donor(at.chosen.donor) if at.chosen.donor in {each.value for each in Donor} else Donor.OTHER


def _texts_for(at: At, donor: Donor) -> torch.Tensor | None:
    return _texts(at) if donor in (Donor.MEAN, Donor.RESAMPLE) else None


def _map(at: At) -> tuple[dict[str, Any], Result]:
    found, part = _patched(at), window(at.look.length, at.chosen.query)
    kept = [
        (row, cell["place"])
        for cell in at.chosen.kept
        for row, each in enumerate(found.rows)
        if [*each, found.part] == [cell.get(name) for name in ("layer", "index", "part")]
        and isinstance(cell.get("place"), int)
    ]
    words = patched_result(found, at.look.tokens, _answers(at, _pair(at)), _donor(at), at.chosen.path == "direct")
    more = "" if kept else " Click a cell to keep its patch."
    more += " Your edits are not part of this map." if at.edits else ""
    words = replace(words, details=f"{words.details}{more}{window_words(at.look, part)}")
    return patch_picture(found, at.look.labels(), part, kept), words


def _continued(at: At) -> str:
    """The kept patches, and how the model continues without and with them."""
    cells, donor = at.chosen.kept, _donor(at)
    if not cells:
        return ""
    there = donated(at.look.model, _pair(at), donor, _texts_for(at, donor))
    try:
        if len(cells) > PATCHES:
            raise KeyError
        keys = [(cell["layer"], cell["part"], cell["place"], cell["index"]) for cell in cells]
        patches = [patch_from(at.look.model, there, *key, donor) for key in keys]
    except (KeyError, TypeError):
        raise ValueError("These patches cannot be read. Click a cell of the map") from None
    tap = edits_tap([*at.edits, *patches], at.look.config)
    chips = "".join(
        f'<span class="edit-chip"><bdi>{html.escape(kept_words(part, layer, index, at.look.tokens[place]))}</bdi> '
        f"{move_button('Restore', {'kept': [*cells[:i], *cells[i + 1 :]]}, kind='link')}</span>"
        for i, (layer, part, place, index) in enumerate(keys)
    )
    texts = {"Unpatched": edits_tap(at.edits, at.look.config), "Patched": tap}
    return f'<div class="line tight">{chips}</div>{_cards({name: _written(at, tap) for name, tap in texts.items()})}'


def _written(at: At, tap: Tap) -> str:
    """How the model continues the prompt, with a seed of its own."""
    new = min(NEW_TOKENS, at.page.limits.new_tokens)
    model, ids = at.look.model, at.look.ids

    def write() -> list[int]:
        return [step.tokens[0] for step in generate(model, ids, new, RULES, tap=tap)]

    device = next(model.parameters()).device
    written = in_decoding_threads(at.look.config.n_active_parameters, device, write)
    return at.look.checkpoint.tokenizer.decode([*ids, *written])


def _cards(texts: dict[str, str]) -> str:
    cards = "".join(
        f'<div><strong>{html.escape(name)}</strong><p dir="auto"><samp>{html.escape(text)}</samp></p></div>'
        for name, text in texts.items()
    )
    return f'<div class="by-temperature">{cards}</div>'


# ---- steering --------------------------------------------------------------------------------------------------------


def _strength(at: At) -> float:
    return max(0.0, min(STRONGEST, at.chosen.strength))


def _direction(at: At) -> torch.Tensor:
    look, c = at.look, at.chosen
    _check_size(at, 2 * PAIRS * look.length, "steering")
    sides = _lines(at, c.towards), _lines(at, c.away)
    made = lambda: difference_of_means(look.model, *sides, c.steer_layer)  # noqa: E731
    return _kept.get(("direction", c.towards, c.away, c.steer_layer), made, owner=look.model)


def _curve(at: At) -> tuple[dict[str, Any], Result]:
    look, judged, pair = at.look, held_out(at.page, at.look), _pair(at)
    _check_size(at, STRENGTHS * judged.inputs.numel(), "this curve")
    most = _strength(at) or 1.0
    strengths = [most * (2 * i / (STRENGTHS - 1) - 1) for i in range(STRENGTHS)]
    windows = judged.inputs, judged.targets
    answers = pair.foil, pair.answer  # the suggested direction leads to the other prompt's
    direction, layer = _direction(at), at.chosen.steer_layer
    measure = lambda: steering_curve(look.model, direction, layer, strengths, look.ids, answers, windows)  # noqa: E731
    key = "curve", at.chosen.towards, at.chosen.away, layer, most, pair
    curve = _kept.get(key, measure, owner=look.model)
    words = steered_result(curve, _answers(at, pair)[::-1])
    return steering_picture(curve), replace(words, details=f"{words.details} Measured on {judged.words}.".strip())


def _side_by_side(at: At) -> str:
    direction, layer = _direction(at), at.chosen.steer_layer
    strengths = dict.fromkeys(part * _strength(at) for part in SIDE_BY_SIDE)
    taps = {signed(s, 2, plus=bool(s)): steering_tap(at.look.model, direction, layer, s) for s in strengths}
    return _cards({name: _written(at, tap) for name, tap in taps.items()})


# ---- the circuit -----------------------------------------------------------------------------------------------------


def _graph(at: At) -> tuple[dict[str, Any], Result]:
    look, pair = at.look, _pair(at)
    half = PAIRS // 2
    _check_size(at, look.length * circuit.passes_of(look.config, half), "a search of its circuits")

    def search() -> circuit.Circuit:
        more = fresh_pairs(look.model, look.checkpoint.tokenizer, pair, _texts(at), n=PAIRS - 1)
        known = (len(more) + 1) // 2
        return find_circuit(look.model, [pair, *more[: known - 1]] if more else [pair], more[max(known - 1, 0) :])

    found = _kept.get(("circuit", pair), search, owner=look.model)
    try:
        patterns = circuit.patterns_of(roles_of(at.page, look).tests, found.nodes)
    except ValueError:  # a model too large to test its heads here
        patterns = {}
    return circuit_picture(found, patterns), circuit_result(found, patterns)
