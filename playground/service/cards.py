"""From a run on this server to the card that repeats it, and back."""

from __future__ import annotations

from dataclasses import replace

from .. import links
from ..devices import machine_kind
from ..links import LinkError, RunCard, chosen_losses
from ..processes import threads_used
from .runs import HUB_FILE, RunSpec, Source
from .views import RunView


def card_of(view: RunView, spec: RunSpec) -> RunCard:
    """The card of a run, with its losses if they follow from its settings alone."""
    training = spec.training
    losses = () if view.lengthened else chosen_losses(view.history.evaluations, training.eval_every, training.steps)
    text_hash = view.corpus_key.split("/")[0][: links.HASH_LETTERS]
    return replace(settings_card(spec, text_hash), losses=losses, machine=machine_of(view))


def run_letters(view: RunView, spec: RunSpec | None) -> str:
    """The letters of a link to this run; empty if there is no run to link to."""
    if spec is None or spec.parent or view.state != "finished" or not view.corpus_key:
        return ""
    try:
        return card_of(view, spec).to_letters()
    except LinkError:
        return ""


def machine_of(view: RunView) -> str:
    """The kind of machine on which a run was trained."""
    device, _, precision = view.device.partition(", ")
    numbers = view.config.numbers_in_step(view.settings.get("batch_size", 0)) if view.config else 0
    return machine_kind(device, precision, threads_used(numbers))


def spec_of(card: RunCard, text: str = "") -> RunSpec:
    """The run that a card describes; a visitor's own text is never in a card and is given separately."""
    repo, filename, repo_type = card.hub or ("", "", "dataset")
    source = Source(card.text, text=text, repo=repo, filename=filename, repo_type=repo_type)
    return RunSpec(source, card.model, card.training, card.tokenizer, card.vocab_size)


def settings_card(spec: RunSpec, text_hash: str | None = None) -> RunCard:
    """The card of a run that nobody has trained yet; the hash of its own text is computed if unknown."""
    source = spec.source
    if text_hash is None:
        text_hash = links.text_hash(source.text) if source.text else ""
    return RunCard(
        text=source.kind,
        model=spec.model,
        training=spec.training,
        tokenizer=spec.tokenizer,
        vocab_size=spec.vocab_size,
        text_hash=text_hash,
        hub=(source.repo, source.filename, source.repo_type) if source.kind == HUB_FILE else None,
    )
