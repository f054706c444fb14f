"""Linked runs: a link sets the form up, Train repeats the run, and the page says whether the losses are the same."""

from __future__ import annotations

import dataclasses
import html
from typing import Any

from .... import links
from ....links import SEEN_ONLY, RunCard
from ....service.cards import card_of, machine_of, run_letters, spec_of
from ....service.limits import Limits
from ....service.runs import HUB_FILE, OWN_TEXT, RunSpec
from ....service.views import RunView
from ....words.links import repetition_in_words
from ....words.training import in_steps
from ... import theme
from ...forms import run as form
from ...forms import texts

# ---- a run's card ----------------------------------------------------------------------------------------------------


def has_link(view: RunView, spec: RunSpec | None) -> bool:
    """Whether a link can lead others to this model: it ships with the project, or can be trained again."""
    return view.id.startswith("shipped-") or bool(run_letters(view, spec))


def match(view: RunView, spec: RunSpec | None) -> str:
    """How a run compares with the one it repeats, as HTML; empty if it repeats none, or one without losses."""
    card = view.repeats
    if card is None or spec is None or not card.losses or not view.corpus_key or view.state == "failed":
        return ""
    mine = card_of(view, spec)
    changed = [form.setting_name(name) for name in card.differing(mine)]
    if card.text_hash and not mine.text_hash.startswith(card.text_hash):
        changed.append("the text")
    if changed:
        words = f"No longer the link's run, since you changed {', '.join(changed)}. The losses need not be the same."
        return theme.notice(words, "info")
    tone, words = repetition_in_words(card, view.history.evaluations, machine_of(view))
    return theme.notice(words, tone)


# ---- a card in the form ----------------------------------------------------------------------------------------------


def in_the_form(card: RunCard, limits: Limits) -> tuple[dict[str, Any], RunSpec]:
    """The form's values for this card, and the run that it then describes. Raises ValueError."""
    spec = spec_of(card)
    values = form.values_of(spec)
    return values, form.run_spec(values, spec.source, limits)


def with_all_settings(card: RunCard, spec: RunSpec, limits: Limits) -> RunSpec:
    """A run that the form describes, with the card's settings for which the form has no control, or other rules."""
    _, forms = in_the_form(card, limits)
    model = {n: mine for n, (mine, _) in card.model.differences(forms.model).items() if n != "vocab_size"}
    names = [name for name in links.LINKED if name not in SEEN_ONLY]
    mine = {name: getattr(card.training, name) for name in names}
    training = {name: value for name, value in mine.items() if value != getattr(forms.training, name)}
    return dataclasses.replace(spec, model=spec.model.replace(**model), training=spec.training.replace(**training))


def linked_html(card: RunCard, base: str) -> str:
    """What the link has set and what to do next, as HTML. Everything is escaped."""
    text = {OWN_TEXT: "its author's own text", HUB_FILE: "a Hub file"}.get(card.text) or texts.SOURCES[card.text]
    steps, seed = in_steps(card.training.steps), card.training.seed
    words = f"Set up from a link: {text}, {form.SIZES[base]}, {steps}, seed {seed}. "
    if card.losses:
        step, _, loss = card.losses[-1]
        words += f"That run reached a validation loss of {loss:.4f} at step {step:,}. "
    if card.text == OWN_TEXT:
        words += f"A link holds no texts: paste the same one below (its hash is {card.text_hash}), then press Train."
    elif card.hub:
        words += f"It learns from {card.hub[1]} of {card.hub[0]} ({card.hub[2]}). Press Train to repeat it."
    else:
        words += "Press Train to repeat it and to compare the losses."
    return f'<p class="notice" role="status">{html.escape(words)}</p>'
