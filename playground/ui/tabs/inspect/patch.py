"""Patch from another prompt: which states of the model carry the difference between two prompts."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import torch

from ....figures.interventions import patch_picture
from ....inspection.edits import edits_tap
from ....interventions.patching import PARTS, Donor, PatchMap, donated, passes_of, patch_from, patch_map
from ....model import Pass, Tap
from ....service.limits import PATCHES
from ....words import interventions as words
from ....words.result import Result
from ...chart import chart_place
from ...clicks import cell_of
from ...panel import Slot, choice, move_button, slot, switch
from .drawn import window, window_buttons, window_words
from .pairs import (
    FIELD,
    answers_of,
    cards,
    check_size,
    ideas,
    kept_here,
    pair_here,
    texts_like,
    with_headline,
)
from .selection import At

SEEN = 0.01
"""Share of the strongest effect that a map's last token has at least."""
_PATHS = {"total": "All paths", "direct": "Direct path"}

TEMPLATE = f"""<details class="fold" data-fold="patch"><summary>Patch from another prompt</summary>
<div class="card stack">{FIELD}{slot("pair-ideas", class_="line")}
<div class="stack" data-if="other">{slot("patch-map-headline")}
{chart_place("patch-map", height=300, save_name="patching", clickable=True)}
{slot("patch-window", class_="line tight")}{slot("patch-kept", class_="stack")}
<details><summary>More</summary><div class="line">{slot("patch-parts")}{switch("path", "Effect", _PATHS)}
{choice("donor", "Replace with", {donor.value: text for donor, text in words.DONOR_NAMES.items()})}</div></details>
</div></div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The map and the kept patches, where they are unfolded."""
    c = at.chosen
    if not c.patch:
        return {}
    about = (*at.about, c.other, c.part, c.donor, c.path, c.kept)
    parts = {part: text for part, text in words.PART_NAMES.items() if part != "expert" or at.look.config.n_experts}
    suggested = {"pair-ideas": ideas(at)}
    if not c.other:
        return suggested
    return {
        **suggested,
        "patch-parts": Slot(len(parts), lambda: switch("part", "Part", parts)),
        **with_headline("patch-map", (*about, c.query), lambda: _map(at), lambda: _below(at)),
        "patch-window": Slot((*about, c.query), lambda: _window(at), slow=True, echoes=True),
        "patch-kept": Slot(about, lambda: _continued(at), slow=True, echoes=True),
    }


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A cell of the map is a patch to keep, or to remove."""
    if click.get("slot") != "patch-map":
        return None
    found = _patched(at)
    part = _shown(at, found)
    row, column = cell_of(click, rows=len(found.rows), columns=part.stop - part.start)
    cell = _cell(found, row, part.start + column)
    rest = [each for each in at.chosen.kept if each != cell]
    if len(rest) == len(at.chosen.kept):
        if len(rest) >= PATCHES:
            raise ValueError(f"You can keep at most {PATCHES} patches. Remove one first")
        rest.append(cell)
    return {"kept": tuple(rest)}


def _cell(found: PatchMap, row: int, place: int) -> dict[str, Any]:
    layer, index = found.rows[row]
    return {"part": found.part, "layer": layer, "index": index, "place": place}


def _kept(at: At) -> tuple[dict[str, Any], ...]:
    """The patches that were clicked; before that, the strongest of the map."""
    return at.chosen.kept or (_cell(found := _patched(at), *found.strongest_in()),)


def _patched(at: At) -> PatchMap:
    c, look, pair = at.chosen, at.look, pair_here(at)
    part = c.part if c.part in PARTS else "residual"
    donor, direct = _donor(at), c.path == "direct"
    check_size(at, look.length * passes_of(look.config, part, look.length), "this map")

    def patch() -> PatchMap:
        return patch_map(look.model, pair, part, donor, texts=_texts_for(at, donor), direct=direct)

    return kept_here.get(("map", pair, part, donor, direct), patch, owner=look.model)


def _middle(at: At, found: PatchMap) -> int:
    """The token around which the map shows others: that of the strongest cell, or the one that was chosen above."""
    return found.strongest_in()[1] if at.chosen.query == at.look.length - 1 else at.chosen.query


def _shown(at: At, found: PatchMap) -> slice:
    """The tokens that the map shows. Before the first difference, the other prompt's values are the same.

    Unless a token was chosen above, those at the end are left out at which no patch does anything.
    """
    part = window(at.look.length, _middle(at, found))
    first = pair_here(at).changed[0] if _donor(at) is Donor.OTHER and at.look.config.causal else 0
    if at.chosen.query == at.look.length - 1:
        strongest = abs(found.effects[:, part]).max(axis=0)
        part = slice(part.start, part.start + 1 + int(np.flatnonzero(strongest >= SEEN * strongest.max())[-1]))
    return slice(max(part.start, first), part.stop) if first < part.stop else part


def _window(at: At) -> str:
    return window_buttons(at.look.length, _middle(at, _patched(at)))


def _donor(at: At) -> Donor:
    return Donor(at.chosen.donor) if at.chosen.donor in {each.value for each in Donor} else Donor.OTHER


def _texts_for(at: At, donor: Donor) -> torch.Tensor | None:
    return texts_like(at) if donor in (Donor.MEAN, Donor.RESAMPLE) else None


def _map(at: At) -> tuple[dict[str, Any], Result]:
    found = _patched(at)
    part = _shown(at, found)
    kept = [
        (row, cell["place"])
        for cell in _kept(at)
        for row, each in enumerate(found.rows)
        if [*each, found.part] == [cell.get(name) for name in ("layer", "index", "part")]
        and isinstance(cell.get("place"), int)
    ]
    answers, direct = answers_of(at), at.chosen.path == "direct"
    result = words.patched_result(found, at.look.tokens, answers, _donor(at), direct, part)
    return patch_picture(found, at.look.labels(), part, answers, kept), result


def _below(at: At) -> str:
    edits = " Your edits are not part of this map." if at.edits else ""
    return f"{window_words(at.look, _shown(at, _patched(at)))}{edits}".strip()


def _continued(at: At) -> str:
    """The patches, and how the model continues without and with them."""
    cells, donor = _kept(at), _donor(at)
    pair, tokens = pair_here(at), at.look.tokens
    there = donated(at.look.model, pair, donor, _texts_for(at, donor))
    try:
        if len(cells) > PATCHES:
            raise KeyError
        keys = [(cell["layer"], cell["part"], cell["place"], cell["index"]) for cell in cells]
        patches = [patch_from(at.look.model, there, *key, donor) for key in keys]
    except (KeyError, TypeError):
        raise ValueError("These patches cannot be read. Click a cell of the map") from None
    tap = edits_tap([*at.edits, *patches], at.look.config)
    chips = "".join(
        f'<span class="edit-chip"><bdi>{html.escape(words.kept_words(part, layer, index, place, tokens))}</bdi> '
        + (move_button("Restore", {"kept": [*cells[:i], *cells[i + 1 :]]}, kind="link") if at.chosen.kept else "")
        + "</span>"
        for i, (layer, part, place, index) in enumerate(keys)
    )
    texts = {"Unpatched": edits_tap(at.edits, at.look.config), "Patched": tap}
    said = words.expected_words(*(_likeliest(at, each) for each in texts.values()), answers_of(at))
    chips = f'<div class="line tight">{chips}</div>'
    return f"{chips}<p>{html.escape(said)}</p>{cards(at, texts)}"


def _likeliest(at: At, tap: Tap) -> tuple[str, float]:
    """The likeliest next token, and its probability."""
    look = at.look
    with torch.inference_mode():
        chances = look.model(torch.tensor([look.ids]), Pass(tap=tap)).logits[0, -1].float().softmax(-1)
    return look.token_label(int(chances.argmax())), float(chances.max())
