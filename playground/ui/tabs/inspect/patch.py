"""Patch from another prompt: which states of the model carry the difference between two prompts."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ....figures.interventions import patch_picture
from ....inspection.edits import edits_tap
from ....interventions.patching import Donor, PatchMap, donated, passes_of, patch_from, patch_map
from ....model import Pass, Tap
from ....service.limits import PATCHES
from ....words import interventions as words
from ....words.result import Result
from ...chart import chart_place
from ...clicks import cell_of
from ...panel import Slot, choice, move_button, slot, switch
from .drawn import window
from .pairs import answers_of, cards, check_size, ideas, kept_here, pair_here, texts_like, with_headline
from .selection import At, Cell

SEEN = 0.01
"""Share of the strongest effect that a map's last token has at least."""

TEMPLATE = f"""<details class="fold" data-fold="patch"><summary>Patch from another prompt</summary>
<div class="card stack"><div class="line"><label class="field-label grow">Other prompt <textarea rows="1"
name="other" data-resets="kept" dir="auto" autocomplete="off" spellcheck="false"
placeholder="Your prompt with one word changed"></textarea></label></div>{slot("pair-ideas", class_="line")}
<div class="stack" data-if="other">{slot("patch-map-headline")}{slot("patch-kept", class_="stack")}
{slot("patch-parts")}{chart_place("patch-map", height=300, save_name="patching", clickable=True)}
<details class="stack"><summary>More</summary><div class="line">{switch("path", "Effect", words.EFFECT_NAMES)}
{choice("donor", "Replace with", {donor.value: text for donor, text in words.DONOR_NAMES.items()})}</div>
{slot("patch-assumed", tag="p", class_="quiet")}</details></div></div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The map, and the texts without and with patches, where they are unfolded."""
    c = at.chosen
    if not c.patch:
        return {}
    suggested = {"pair-ideas": ideas(at)}
    if not c.other:
        return suggested
    about = (*at.about, c.other, c.part, c.path, c.donor, c.kept, bool(at.edits))
    parts = {part: text for part, text in words.PART_NAMES.items() if part != "expert" or at.look.config.n_experts}
    return {
        **suggested,
        "patch-parts": Slot(len(parts), lambda: switch("part", "Part", parts)),
        **with_headline("patch-map", about, lambda: _map(at)),
        "patch-assumed": Slot((c.path, c.donor), lambda: words.assumed_words(c.donor, direct=c.path == "direct")),
        "patch-kept": Slot(about, lambda: _continued(at), slow=True, echoes=True),
    }


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A cell of the map is a patch to keep, or to remove."""
    if click.get("slot") != "patch-map":
        return None
    found = _patched(at)
    part = _shown(at, found)
    row, column = cell_of(click, rows=len(found.rows), columns=part.stop - part.start)
    cell, kept = _cell(found, row, part.start + column), at.chosen.kept
    if cell in kept:
        return {"kept": tuple(each for each in kept if each != cell)}
    if len(kept) >= PATCHES:
        raise ValueError(f"You can keep at most {PATCHES} patches. Undo one first")
    return {"kept": (*kept, cell)}


def _cell(found: PatchMap, row: int, place: int) -> Cell:
    layer, index = found.rows[row]
    return Cell(part=found.part, layer=layer, index=index, place=place)


def _cells(at: At) -> tuple[Cell, ...]:
    """The patches that were clicked; before that, the strongest of the map."""
    return at.chosen.kept or (_cell(found := _patched(at), *found.strongest),)


def _patched(at: At) -> PatchMap:
    c, look, pair = at.chosen, at.look, pair_here(at)
    part, donor, direct = c.part, c.donor, c.path == "direct"
    check_size(at, look.length * passes_of(look.config, part, look.length), "this map")

    def patch() -> PatchMap:
        return patch_map(look.model, pair, part, donor, texts=_texts(at), direct=direct)

    return kept_here.get(("map", pair, part, donor, direct), patch, owner=look.model)


def _texts(at: At) -> torch.Tensor | None:
    """Other texts, for a donor that takes its values from them."""
    return texts_like(at) if at.chosen.donor in (Donor.MEAN, Donor.RESAMPLE) else None


def _shown(at: At, found: PatchMap) -> slice:
    """The tokens that the map shows, from the first on that can have an effect, to the last that has any."""
    first = pair_here(at).changed[0] if at.look.config.causal and at.chosen.donor is Donor.OTHER else 0
    part = window(at.look.length, max(first, found.strongest[1]))
    effects = abs(found.effects[:, part]).max(axis=0)
    last = part.start + int(np.flatnonzero(effects >= SEEN * effects.max())[-1])
    return slice(max(part.start, first), last + 1)


def _map(at: At) -> tuple[dict[str, Any], Result]:
    found, answers = _patched(at), answers_of(at)
    framed = [
        (found.rows.index((cell.layer, cell.index)), cell.place)
        for cell in _cells(at)
        if cell.part == found.part and (cell.layer, cell.index) in found.rows
    ]
    result = words.patched_result(found, at.look.tokens, answers)
    expected = words.expected_words(*(_likeliest(at, each) for each in _taps(at).values()), answers)
    edits = "Your edits are left out here." if at.edits else ""
    result = replace(result, number=f"{result.number} {expected} {edits}".strip())
    return patch_picture(found, at.look.labels(), _shown(at, found), answers, framed), result


def _taps(at: At) -> dict[str, Tap]:
    """The model without patches and with them."""
    look, donor = at.look, at.chosen.donor
    there, cells = donated(look.model, pair_here(at), donor, _texts(at)), _cells(at)
    patches = [patch_from(look.model, there, each.layer, each.part, each.place, each.index, donor) for each in cells]
    return {"Unpatched": edits_tap((), look.config), "Patched": edits_tap(patches, look.config)}


def _continued(at: At) -> str:
    """The patches that were clicked, and how the model continues without and with patches."""
    kept, taps = at.chosen.kept, _taps(at)
    chips = "".join(
        f'<span class="edit-chip"><bdi>{html.escape(words.kept_words(cell, at.look.tokens))}</bdi> '
        + move_button("Restore", {"kept": [each.model_dump() for each in kept if each != cell]}, kind="link")
        + "</span>"
        for cell in kept
    )
    return f'<div class="line tight">{chips}</div>{cards(at, taps)}'


def _likeliest(at: At, tap: Tap) -> tuple[str, float]:
    """The likeliest next token, and its probability."""
    look = at.look
    with torch.inference_mode():
        chances = look.model(torch.tensor([look.ids]), Pass(tap=tap)).logits[0, -1].float().softmax(-1)
    return look.token_label(int(chances.argmax())), float(chances.max())
