"""Experiment: results of students in a class who changed one thing and left the rest as it was.

Runs whose settings are equal except for the seed make a group; each seed counts once, since it leads to the same run
again. A group must differ from the class's run in one thing only, or it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...links import RunCard
from ...studies.one_change import Experiment, Group
from .members import Klass, Report, Student, card_from

SHAPE = {"n_layers", "d_model", "n_heads", "n_kv_heads", "d_ff", "context_length"}
GOES_WITH_SIZE = {
    "steps", "batch_size", "learning_rate", "muon_learning_rate", "muon_momentum", "warmup_steps", "eval_windows"
}  # fmt: skip
"""Training settings that a position of the size dial sets as well."""
TEXT = {"text", "text_hash", "hub"}


def experiment(klass: Klass, students: Sequence[Student], thing: str, names: dict[int, str]) -> Experiment:
    """What the complete runs of these students say about one thing: seed, size or text.

    Args:
        names: student number → name on the board.
    """
    base = card_from(klass.letters)
    if base is None:
        return Experiment(thing, (), False, 0)
    found: dict[tuple, dict[int, tuple[float, float | None, str]]] = {}
    labels: dict[tuple, tuple[str, bool]] = {}
    complete = [(student, run) for student in students for run in student.runs if run.report.complete]
    for student, run in complete:
        card = card_from(run.letters)
        changed = _changed(base, card) if card is not None and run.report.repeatable else None
        if changed is not None and _only(thing, changed):
            key = tuple(sorted((name, repr(_value(card, name))) for name in changed))
            labels[key] = _label(thing, run.report, card, changed), not changed
            result = run.report.loss, run.report.above, names[student.number]
            found.setdefault(key, {}).setdefault(card.training.seed, result)
    above = thing == "text" and len(found) > 1
    groups = []
    for key, runs in found.items():
        rows = [(over if above else loss, name) for loss, over, name in runs.values()]
        known = [(value, name) for value, name in rows if value is not None]
        if known:
            losses, owners = zip(*known)
            groups.append(Group(labels[key][0], losses, owners, labels[key][1]))
    groups.sort(key=lambda group: (not group.own, group.label))
    left_out = len(complete) - sum(len(group.losses) for group in groups)
    return Experiment(thing, tuple(groups), above, left_out)


def _changed(base: RunCard, card: RunCard) -> set[str]:
    """The settings that differ from the class's run and change what is learned, except the seed."""
    changed = set(base.differing(card)) - {"seed"}
    if card.text == base.text and base.text_hash and not card.text_hash.startswith(base.text_hash):
        changed.add("text_hash")
    return changed


def _only(thing: str, changed: set[str]) -> bool:
    if thing == "size":
        return not changed or (bool(changed & SHAPE) and changed <= SHAPE | GOES_WITH_SIZE)
    return changed <= (TEXT if thing == "text" else set())


def _value(card: RunCard, name: str) -> object:
    return next((getattr(part, name) for part in (card.training, card.model, card) if hasattr(part, name)), None)


def size_in_words(card: RunCard) -> str:
    """Layers and width of a run's model."""
    return f"{card.model.n_layers} layers of {card.model.d_model}"


def _label(thing: str, report: Report, card: RunCard, changed: set[str]) -> str:
    if thing == "size":
        return f"{size_in_words(card)}, {report.n_parameters:,} parameters"
    return report.text if thing == "text" else "the class's settings"
