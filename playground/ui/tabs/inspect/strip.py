"""The prompt as tokens, shaded by where the chosen one looks; beside it the next token; below it the edits in force."""

from __future__ import annotations

import html
import json

import torch

from ....inspection.cost import Effect, effect
from ....inspection.edits import edits_tap, to_dict
from ....kept import Kept
from ....words.edits import SEEN, edit_words
from ....words.heads import head_name, next_words
from ....words.numbers import percent
from ...panel import Slot, move_button, slot
from .selection import At

TEMPLATE = f"""<div class="stack" data-if="view:steps view:heads"><div class="strip-head">
{slot("strip-words", tag="p", class_="quiet")}</div>
{slot("tokens", class_="tokens", data_arrows="", role="group", aria_label="The prompt's tokens", dir="auto")}</div>"""

LONGEST = 12
"""Characters of a token that are shown; a longer one is shortened in the middle."""

_effects = Kept(entries=256, megabytes=16)


def slots(at: At) -> dict[str, Slot]:
    """The prediction, the tokens and the edits."""
    c = at.chosen
    shade = (*at.about, *at.owner, c.query)
    return {
        "next": Slot((*at.about, c.edits), lambda: next_token(at)),
        "tokens": Slot(shade, lambda: tokens(at)),
        "strip-words": Slot(shade, lambda: words(at)),
        "edits-in-force": Slot((*at.about, c.edits), lambda: in_force(at)),
        "edits-seen": Slot(bool(c.edits), lambda: SEEN if c.edits else ""),
    }


def edited(at: At, query: int | None = None) -> Effect:
    """The prediction after a token (after the last one by default), without and with the edits in force."""
    query = at.look.length - 1 if query is None else query
    key = ("edited", at.look.ids, json.dumps(at.chosen.edits, sort_keys=True), query)
    tap = edits_tap(at.edits, at.look.config)
    return _effects.get(
        key, lambda: effect(at.look.model, torch.tensor([at.look.ids]), tap, query), owner=at.look.model
    )


def next_token(at: At) -> str:
    """The likeliest next token; with edits, its probability before and after."""
    if not at.edits:
        probabilities = at.look.trace["logits"][0, -1].float().softmax(-1)
        token = int(probabilities.argmax())
        return _said(at, token, next_words(float(probabilities[token])))
    found = edited(at)
    token, before = int(found.after.argmax()), int(found.before.argmax())
    said = _said(at, token, next_words(float(found.after[token]), float(found.before[token])))
    if token != before:
        said += _said(at, before, next_words(float(found.after[before]), float(found.before[before])), was_first=True)
    return said


def _said(at: At, token: int, words: str, *, was_first: bool = False) -> str:
    label = html.escape(at.look.token_label(token))
    lead = "" if was_first else "Next: "
    return f'<span>{lead}<b><bdi>{label}</bdi></b> <span class="quiet">{html.escape(words)}</span></span>'


def weights(at: At) -> torch.Tensor:
    """Where the chosen token looks: weights (T,) of the chosen head."""
    return at.look.pattern(at.chosen.layer)[at.chosen.head, at.chosen.query].float().cpu()


def tokens(at: At) -> str:
    """One button per token."""
    row, chosen = weights(at), at.chosen.query
    strongest = int(row.argmax())
    # the row goes the way of its text, which browsers do not look for inside of <bdi>
    return f"<span hidden>{html.escape(''.join(at.look.tokens)[:100])}</span>" + "".join(
        token_button(at.look.tokens[i], i, float(weight), chosen=i == chosen, strongest=i == strongest)
        for i, weight in enumerate(row)
    )


def token_button(token: str, place: int, weight: float, *, chosen: bool, strongest: bool) -> str:
    """A token as a button, shaded by its weight; the one with the strongest weight is underlined."""
    move = html.escape(json.dumps({"query": place, "key": None}), quote=True)
    classes = " ".join(name for name, there in (("token", True), ("chosen", chosen), ("strongest", strongest)) if there)
    said = html.escape(f"{place} {token}, {100 * weight:.1f} %", quote=True)
    return (
        f'<button type="button" class="{classes}" data-move="{move}" style="--weight:{weight:.3f}" title="{said}" '
        f'aria-label="{said}" aria-pressed="{str(chosen).lower()}" tabindex="{0 if chosen else -1}">'
        f"<bdi>{html.escape(shortened(token))}</bdi></button>"
    )


def shortened(token: str) -> str:
    """The token, shortened in the middle to at most LONGEST characters."""
    return token if len(token) <= LONGEST else f"{token[: LONGEST // 2]}…{token[-(LONGEST // 2 - 1) :]}"


def words(at: At) -> str:
    """What the shade means: the strongest weight."""
    row = weights(at)
    token, most = html.escape(at.look.tokens[int(row.argmax())]), percent(float(row.max()), 0)
    return f"In {head_name(*at.owner).lower()} the framed token gives {most} of its attention to “<bdi>{token}</bdi>”."


def in_force(at: At) -> str:
    """A chip for each edit, which takes it back; nothing where there is none."""
    listed = [to_dict(edit) for edit in at.edits]
    if not listed:
        return ""
    chips = "".join(
        f'<span class="edit-chip"><bdi>{html.escape(edit_words(edit))}</bdi> '
        f"{move_button('Restore', {'edits': [*listed[:i], *listed[i + 1 :]]}, kind='link')}</span>"
        for i, edit in enumerate(at.edits)
    )
    every = move_button("Restore all", {"edits": []}, kind="link") if len(listed) > 1 else ""
    return f'<div class="line tight">{chips}{every}</div>'
