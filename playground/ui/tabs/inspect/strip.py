"""The prompt as tokens, shaded by where the chosen one looks; beside it the next token; below it the edits in force."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence

import torch

from ....figures.wire import shortened
from ....inspection import Look
from ....inspection.cost import Effect, effect
from ....inspection.edits import Edit, edits_tap, to_dict
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
"""Characters of a token that are shown."""

_effects = Kept(entries=512, megabytes=16)


def slots(at: At) -> dict[str, Slot]:
    """The prediction, the tokens and the edits."""
    c = at.chosen
    shade = (*at.about, *at.owner, c.strip, c.query)
    return {
        "next": Slot((*at.about, c.edits), lambda: next_token(at)),
        "tokens": Slot(shade, lambda: tokens(at)),
        "strip-words": Slot(shade, lambda: words(at)),
        "edits-in-force": Slot((*at.about, c.edits), lambda: in_force(at)),
        "edits-seen": Slot(bool(c.edits), lambda: SEEN if c.edits else ""),
    }


def effect_of(look: Look, edits: Sequence[Edit], query: int) -> Effect:
    """The prediction after a token without and with edits."""
    tap, key = edits_tap(edits, look.config), (look.ids, tuple(edits), query)
    return _effects.get(key, lambda: effect(look.model, torch.tensor([look.ids]), tap, query), owner=look.model)


def next_token(at: At) -> str:
    """The likeliest next token; with edits, its probability before and after."""
    if not at.edits:
        probabilities = at.look.trace["logits"][0, -1].float().softmax(-1)
        token = int(probabilities.argmax())
        return _said(at, token, next_words(float(probabilities[token])))
    found = effect_of(at.look, at.edits, at.look.length - 1)
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
    """Where the chosen token looks: weights (T,) of the chosen head, or the mean over all heads of all layers."""
    if at.chosen.strip == "head":
        return at.look.pattern(at.chosen.layer)[at.chosen.head, at.chosen.query].float().cpu()
    layers = range(at.look.config.n_layers)
    return torch.stack([at.look.pattern(layer)[:, at.chosen.query].float().cpu().mean(0) for layer in layers]).mean(0)


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
        f"<bdi>{html.escape(shortened(token, LONGEST))}</bdi></button>"
    )


def words(at: At) -> str:
    """What the shade means: the strongest weight; and a button that shades by all heads, or by the chosen one."""
    row, one, every = weights(at), head_name(*at.owner).lower(), at.chosen.strip == "all"
    token, most = html.escape(at.look.tokens[int(row.argmax())]), percent(float(row.max()), 0)
    said = f"the framed token gives {most} of its attention to “<bdi>{token}</bdi>”."
    if every:
        return f"On average over all heads, {said} {move_button(f'Only {one}', {'strip': 'head'}, kind='link')}"
    return f"In {one} {said} {move_button('Average over all heads', {'strip': 'all'}, kind='link')}"


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
