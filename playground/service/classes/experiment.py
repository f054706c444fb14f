"""Experiment: results of students in a class who changed one thing and left the rest as it was.

Runs whose settings are equal except for the seed make a group; each seed counts once, since it leads to the same run
again. A group must differ from the class's run in one thing only, or it is left out. The interval is Student's, exact,
from the spread between seeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ...links import RunCard
from ...training.verdict import mean_interval, student_t
from ...words.verdict import loss_in_words
from .house import card_from
from .members import Klass, Report, Student

SHAPE = {"n_layers", "d_model", "n_heads", "n_kv_heads", "d_ff", "context_length"}
GOES_WITH_SIZE = {
    "steps", "batch_size", "learning_rate", "muon_learning_rate", "muon_momentum", "warmup_steps", "eval_windows"
}  # fmt: skip
"""Training settings that a position of the size dial sets as well."""
TEXT = {"text", "text_hash", "hub"}
ENOUGH = 3
"""Fewest runs for a useful interval: with two, it is nine times their spread."""


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seed."""

    label: str
    losses: tuple[float, ...]
    """The loss of each run in nats per token, above the floor if the texts differ."""
    names: tuple[str, ...]
    """The students whose runs they are."""
    own: bool = False
    """Whether these are the settings given to the class."""

    @property
    def mean(self) -> float:
        """Mean of the losses."""
        return statistics.fmean(self.losses)

    @property
    def spread(self) -> float:
        """Standard deviation from seed to seed; NaN for one run."""
        return statistics.stdev(self.losses) if len(self.losses) > 1 else math.nan

    @property
    def margin(self) -> float | None:
        """Half the width of the mean's 95 % interval; None if there are too few runs."""
        return float(mean_interval(self.losses)[1]) if len(self.losses) >= ENOUGH else None


@dataclass(frozen=True)
class Experiment:
    """A class's results on the one setting that its students change."""

    thing: str
    """seed, size or text."""
    groups: tuple[Group, ...]
    above_floor: bool
    """Whether losses are differences from their text's best possible loss."""
    repeated: int
    """How many runs repeated a seed and so do not count again."""
    left_out: int
    """How many runs changed something else, or more than one thing, or cannot be compared."""

    def in_words(self) -> str:
        """The result in a few sentences."""
        if not self.groups:
            return "No run has come to its end yet, or none changed only this. The picture fills as runs end."
        parts = [_group_in_words(group, len(self.groups) > 1, self.above_floor) for group in self.groups[:6]]
        own = next((group for group in self.groups if group.own), None)
        if own is not None and own.margin is not None:
            others = [group for group in self.groups if group is not own and group.margin is not None]
            parts += [_difference_in_words(group, own, len(others), self.above_floor) for group in others[:4]]
        if self.thing == "size" and len(self.groups) > 1:
            parts.append("Steps and rates that go with a size may differ as well.")
        if self.repeated:
            runs = (
                "1 run repeated a seed and counts"
                if self.repeated == 1
                else f"{self.repeated} runs repeated seeds and count"
            )
            parts.append(f"{runs} once.")
        if self.left_out:
            runs = "1 run is" if self.left_out == 1 else f"{self.left_out} runs are"
            parts.append(f"{runs} left out: they changed something else as well, or cannot be compared.")
        return " ".join(parts)


def experiment(klass: Klass, students: Sequence[Student], thing: str, names: dict[int, str]) -> Experiment:
    """What the complete runs of these students say about one thing: seed, size or text.

    Args:
        names: student number → name on the board.
    """
    base = card_from(klass.letters)
    if base is None:
        return Experiment(thing, (), False, 0, 0)
    found: dict[tuple, dict[int, tuple[float, float | None, str]]] = {}
    labels: dict[tuple, tuple[str, bool]] = {}
    repeated = left_out = 0
    for student in students:
        for run in student.runs:
            if not run.report.complete:
                continue
            card = card_from(run.letters)
            changed = _changed(base, card) if card is not None and run.report.repeatable else None
            if changed is None or not _only(thing, changed):
                left_out += 1
                continue
            key = tuple(sorted((name, repr(_value(card, name))) for name in changed))
            runs = found.setdefault(key, {})
            labels[key] = _label(thing, run.report, card, changed), not changed
            if card.training.seed in runs:
                repeated += 1
            else:
                runs[card.training.seed] = run.report.loss, run.report.above, names[student.number]
    above = thing == "text" and len(found) > 1
    groups = []
    for key, runs in found.items():
        rows = [(over if above else loss, name) for loss, over, name in runs.values()]
        known = [(value, name) for value, name in rows if value is not None]
        left_out += len(rows) - len(known)
        if known:
            losses, owners = zip(*known)
            groups.append(Group(labels[key][0], losses, owners, labels[key][1]))
    groups.sort(key=lambda group: (not group.own, group.label))
    return Experiment(thing, tuple(groups), above, repeated, left_out)


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


def _group_in_words(group: Group, several: bool, above_floor: bool) -> str:
    n, where = len(group.losses), f"{group.label}: " if several else ""
    above = " above its best possible loss" if above_floor else ""
    if n == 1:
        return f"{where}{group.mean:.4f}{above} in one run, which says nothing of luck."
    if group.margin is None:
        low, high = min(group.losses), max(group.losses)
        return f"{where}{n} runs between {low:.4f} and {high:.4f}{above}, too few for an interval: {ENOUGH} are needed."
    mean = f"{group.mean:.4f} ± {group.margin:.4f}" if above_floor else loss_in_words(group.mean, group.margin)
    return (
        f"{where}{mean}{above} over {n} seeds (95 % interval of the mean, Student's t), "
        f"and a single run lands about {group.spread:.4f} from it."
    )


def _difference_in_words(group: Group, own: Group, several: int, above_floor: bool) -> str:
    """Welch's interval for the difference of two means, with degrees of freedom rounded down, and Bonferroni's
    correction if there are several."""
    errors = [g.spread**2 / len(g.losses) for g in (group, own)]
    difference, total = group.mean - own.mean, sum(errors)
    if not total:
        return ""
    freedom = total**2 / sum(e**2 / (len(g.losses) - 1) for e, g in zip(errors, (group, own)))
    margin = student_t(max(int(freedom), 1), 1 - 0.05 / several) * math.sqrt(total)
    size = f"{abs(difference):.4f} ± {margin:.4f}"
    counted = ", each above its own best possible loss" if above_floor else ""
    if abs(difference) <= margin:
        return f"{group.label} does not differ measurably from {own.label} yet ({size}{counted})."
    side = "lower" if difference < 0 else "higher"
    return f"{group.label} ends {size} {side} than {own.label}{counted}: more than luck."
