"""Logit lens: what each layer would predict if the model ended there."""

from __future__ import annotations

import html
from typing import Any

from ....figures.maps import lens_map
from ....inspection import Look
from ....inspection.lens import logit_lens
from ....words.lens import lens_caveat, stage_names
from ....words.pictures import lens_words
from ... import theme
from ...chart import chart_place, show
from ...clicks import index_of
from ...panel import Slot, choice, slot
from .drawn import MOST_GUESSES, window, window_buttons, window_words
from .selection import At

CANDIDATES = 8
"""Likely next tokens that can be followed."""

TEMPLATE = f"""<details class="fold" data-fold="lens"><summary>What each layer would predict (logit lens)</summary>
<div class="card"><p class="quiet">Each row shows what the model would predict if it ended there.
Stronger colours mark cells where the column's final prediction is more probable. For the framed column, you can choose
another token under <i>Follow</i>.</p>
<div class="line">{slot("lens-answer")}{slot("lens-window", class_="line tight")}</div>
{chart_place("lens-map", height=280, save_name="logit-lens", clickable=True)}{slot("lens-caveat")}</div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The lens, where it is unfolded."""
    c = at.chosen
    if not c.lens:
        return {}
    about = (*at.about, c.query)
    token, choices = followed(at)
    return {
        "lens-answer": Slot(about, lambda: choice("answer", "Follow", choices)),
        "lens-window": Slot(about, lambda: window_buttons(at.look.length, c.query, MOST_GUESSES)),
        "lens-map": Slot((*about, token), lambda: show(*lens_picture(at, token), layer=None, head=None)),
        "lens-caveat": Slot(at.look.config.norm_placement, lambda: caveat(at.look)),
    }


def within(at: At) -> dict[str, Any]:
    """The token to follow, where it can be followed here; else the model's own prediction."""
    return {"answer": at.chosen.answer if at.chosen.answer in followed(at)[1] else ""}


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A column of the lens chooses its token."""
    if click.get("slot") != "lens-map":
        return None
    part = window(at.look.length, at.chosen.query, MOST_GUESSES)
    return {"query": part.start + index_of(click, part.stop - part.start), "key": None}


def followed(at: At) -> tuple[int, dict[str, str]]:
    """The token followed after the chosen one, and the choices: the prediction, the prompt's own, other likely ones."""
    look, query = at.look, at.chosen.query
    best = look.trace["logits"][0, query].float().topk(min(CANDIDATES, look.config.vocab_size)).indices.tolist()
    real = look.ids[query + 1] if query + 1 < look.length else None
    choices = {"": f"the prediction: {look.token_label(best[0])}"}
    if real is not None:
        choices[str(real)] = f"the prompt's next token: {look.token_label(real)}"
    choices |= {str(token): look.token_label(token) for token in best[1:] if token != real}
    return int(at.chosen.answer) if at.chosen.answer and at.chosen.answer in choices else best[0], choices


def lens_picture(at: At, token: int) -> tuple[dict[str, Any], str]:
    """The table of guesses, following `token` after the query and the model's own prediction elsewhere."""
    look, query, part = at.look, at.chosen.query, window(at.look.length, at.chosen.query, MOST_GUESSES)
    followed_ids = look.trace["logits"][0].float().argmax(dim=-1).clone()
    followed_ids[query] = token
    found = logit_lens(look.model, look.trace, followed_ids)
    guesses = [[look.token_label(int(guess)) for guess in row[part]] for row in found.best]
    answers = [look.token_label(int(answer)) for answer in found.followed[part]]
    probabilities, ranks = found.followed_probabilities[:, part].numpy(), found.followed_ranks[:, part].numpy()
    column, stages = query - part.start, stage_names(look.config.n_layers)
    figure = lens_map(probabilities, ranks, guesses, stages, look.labels()[part], answers, chosen=column)
    words = lens_words(probabilities[:, column], ranks[:, column], stages, look.tokens[query], answers[column])
    return figure, words + window_words(look, part)


def caveat(look: Look) -> str:
    """How far to trust the lens, as HTML: a notice for a post-norm model, else folded details."""
    text = lens_caveat(look.config)
    if look.config.norm_placement == "post":
        return theme.notice(text)
    return f"<details><summary>Details</summary><p>{html.escape(text)}</p></details>"
