"""Logit lens: what each layer would predict if the model ended there, and how long the residual stream is."""

from __future__ import annotations

import functools
import html
from typing import Any

from ....figures.lens import describe_lens, describe_norms, lens_map, norm_lines
from ....inspection import Look
from ....inspection.lens import LogitLens, logit_lens
from ....words.lens import lens_caveat, stage_names
from ... import theme
from ...chart import chart_place, show
from ...clicks import index_of
from ...panel import Slot, choice, slot
from .drawn import MOST_GUESSES, window, window_buttons, window_words
from .selection import At

CANDIDATES = 8
"""Likely next tokens that can be followed."""

TEMPLATE = f"""<details class="fold" data-fold="lens"><summary>What each layer would predict (logit lens)</summary>
<div class="card"><p class="quiet">Each row reads the residual stream as if the model ended there. The text in a cell is
the row's best guess for the next token; the shade is how probable it finds the followed one.</p>
<div class="line">{slot("lens-answer")}{slot("lens-window", class_="line tight")}</div>
{chart_place("lens-map", height=280, save_name="logit-lens", clickable=True)}{slot("lens-caveat")}</div>
<div class="card"><h3>Length of the residual stream</h3>
{chart_place("lens-norms", height=220, save_name="residual-norms")}</div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The lens and the lengths, where they are unfolded."""
    c = at.chosen
    if not c.lens:
        return {}
    about = (*at.about, c.query)
    token = followed(at)[0]

    @functools.cache
    def found() -> LogitLens:
        return lens_of(at.look, c.query, token)

    return {
        "lens-answer": Slot(about, lambda: choice("answer", "Follow", followed(at)[1])),
        "lens-window": Slot(about, lambda: window_buttons(at.look.length, c.query, MOST_GUESSES)),
        "lens-map": Slot((*about, token), lambda: show(*lens_picture(at, found()), layer=None, head=None)),
        "lens-norms": Slot(about, lambda: show(*norms_picture(at, found()), layer=None, head=None)),
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


def lens_of(look: Look, query: int, token: int) -> LogitLens:
    """The lens, following `token` after the query and the model's own prediction in every other column."""
    answers = look.trace["logits"][0].float().argmax(dim=-1).clone()
    answers[query] = token
    return logit_lens(look.model, look.trace, answers)


def lens_picture(at: At, found: LogitLens) -> tuple[dict[str, Any], str]:
    """The table of guesses and its sentence."""
    look, part = at.look, window(at.look.length, at.chosen.query, MOST_GUESSES)
    guesses = [[look.token_label(int(token)) for token in row[part]] for row in found.best]
    answers = [look.token_label(int(token)) for token in found.followed[part]]
    probabilities, ranks = found.followed_probabilities[:, part].numpy(), found.followed_ranks[:, part].numpy()
    column, stages = at.chosen.query - part.start, stage_names(look.config.n_layers)
    chosen = len(stages) - 1, column
    figure = lens_map(probabilities, ranks, guesses, stages, look.labels()[part], answers, chosen=chosen)
    words = describe_lens(probabilities, ranks, stages, look.tokens[at.chosen.query], answers[column], column)
    return figure, words + window_words(look, part)


def norms_picture(at: At, found: LogitLens) -> tuple[dict[str, Any], str]:
    """Length of the stream by stage, of the chosen token and on average."""
    norms, stages, query = found.norms.numpy(), stage_names(at.look.config.n_layers), at.chosen.query
    return norm_lines(norms, stages, at.look.labels(), query), describe_norms(norms, stages, query)


def caveat(look: Look) -> str:
    """How far to trust the lens: in sight where the model's norms decide it, else folded."""
    text = lens_caveat(look.config)
    if look.config.norm_placement == "post":
        return theme.notice(text)
    return f"<details><summary>Details</summary><p>{html.escape(text)}</p></details>"
