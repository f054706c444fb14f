"""Logit lens: what each layer would predict if the model ended there."""

from __future__ import annotations

import html
from typing import Any

from ....figures.maps import lens_map
from ....inspection.lens import logit_lens
from ....words.lens import lens_caveat, stage_names
from ....words.pictures import lens_words
from ...chart import chart_place, show
from ...clicks import index_of
from ...panel import Slot, slot
from .drawn import MOST_GUESSES, window, window_words
from .selection import At

TEMPLATE = f"""<details class="fold" data-fold="lens"><summary>What each layer would predict (logit lens)</summary>
<div class="card"><p class="quiet">Each row shows what the model would predict if it ended there.
Stronger colours mark cells where the column's final prediction is more probable.</p>
{chart_place("lens-map", height=280, save_name="logit-lens", clickable=True)}
<details><summary>Details</summary>{slot("lens-caveat", tag="p")}</details></div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The lens, where it is unfolded."""
    if not at.chosen.lens:
        return {}
    config = at.look.config
    return {
        "lens-map": Slot((*at.about, at.chosen.query), lambda: lens_picture(at)),
        "lens-caveat": Slot(config.norm_placement, lambda: html.escape(lens_caveat(config))),
    }


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A column of the lens chooses its token."""
    if click.get("slot") != "lens-map":
        return None
    part = window(at.look.length, at.chosen.query, MOST_GUESSES)
    return {"query": part.start + index_of(click, part.stop - part.start), "key": None}


def lens_picture(at: At) -> dict[str, Any] | None:
    """The table of guesses, coloured by how probable each finds the model's own prediction."""
    look, query, part = at.look, at.chosen.query, window(at.look.length, at.chosen.query, MOST_GUESSES)
    found = logit_lens(look.model, look.trace)
    guesses = [[look.token_label(int(guess)) for guess in row[part]] for row in found.best]
    probabilities, ranks = found.probabilities[:, part].numpy(), found.ranks[:, part].numpy()
    column, stages = query - part.start, stage_names(look.config.n_layers)
    figure = lens_map(probabilities, ranks, guesses, stages, look.labels()[part], chosen=column)
    words = lens_words(probabilities[:, column], ranks[:, column], stages, look.tokens[query], guesses[-1][column])
    return show(figure, words + window_words(look, part), layer=None, head=None)
