"""A class: its run, a student's strip, the teacher's board and its two charts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ..studies.one_change import ENOUGH, Experiment, Group
from .baselines import from_the_best
from .verdict import loss_in_words

CHANGING = {
    "": "Everybody trains with exactly the same settings.",
    "seed": "Each student has a different seed and changes nothing else.",
    "size": "Change the size, and nothing else.",
    "text": "Change the text, and nothing else.",
}
GONE = {
    "left": "You have left the class. Your name, runs and answers are deleted from it.",
    "deleted": "The class is deleted, with everything that its students did in it.",
    "gone": "Your class no longer exists: its teacher deleted it, or it ended long ago.",
}
"""Why a page is no longer in a class."""
ENDED = "This class has ended. Your teacher does not see what you train from now on."
SEEN = "Your teacher sees your name, losses, answers and what your model writes, until you leave."
COMPARING = "Compare losses only on the same text. Across texts, compare the distance to the best possible loss."
NO_STUDENTS = "No one has joined yet. Show students the code, or send them their link."
LOCAL = (
    "Only this machine can open this address. Start the page with --host 0.0.0.0 or --share, and make the class at "
    "the address that it prints."
)


def latest_words(loss: float, step: int, planned: int, above: float | None) -> str:
    """A student's last loss, and its distance to the best possible one if that is known."""
    distance = f", {from_the_best(above)}" if above is not None else ""
    return f"Your last run: {loss:.4f} at step {step:,} of {planned:,}{distance}."


def class_words(losses: Sequence[float], best: float | None, left_out: int = 0) -> str:
    """Where a class is, by each student's last loss."""
    if not losses:
        return "No run of the class has been measured yet."
    words = f"Validation loss {losses[0]:.4f}."
    if len(losses) > 1:
        words = f"Validation losses of {len(losses)} runs, each student's last: {min(losses):.4f} to "
        words += f"{max(losses):.4f}, median {statistics.median(losses):.4f}."
    words += "" if best is None else f" The best possible loss is {best:.4f}."
    if left_out:
        runs = "1 run uses" if left_out == 1 else f"{left_out} runs use"
        words += f" {runs} another text or other tokens and cannot be shown on this scale."
    return words


def experiment_words(found: Experiment) -> str:
    """What the runs that changed one thing show: how they differ from the unchanged runs, then each group."""
    if not found.groups:
        return "No finished run has changed only this setting yet. The chart fills as runs finish."
    parts, start = [], "Measured from each text's best possible loss, " if found.above_floor else ""
    for group, own, difference, margin in found.differences():
        size = f"{abs(difference):.4f} ± {margin:.4f}"
        if abs(difference) <= margin:
            parts.append(f"{start}{group.label} does not differ measurably from {own.label} yet ({size}).")
        else:
            side = "lower" if difference < 0 else "higher"
            parts.append(f"{start}{group.label} ends {size} {side} than {own.label}: more than luck.")
    parts += [_group_words(group, len(found.groups) > 1, found.above_floor) for group in found.groups[:6]]
    if found.thing == "size" and len(found.groups) > 1:
        parts.append("Each size also has its own number of steps and learning rate, which may matter.")
    if found.left_out:
        runs = "1 run is left out: it" if found.left_out == 1 else f"{found.left_out} runs are left out: they"
        parts.append(f"{runs} repeated a seed, changed something else as well, or cannot be compared.")
    return " ".join(parts)


def _group_words(group: Group, several: bool, above_floor: bool) -> str:
    n, where = len(group.losses), f"{group.label}: " if several else ""
    above = " above its best possible loss" if above_floor else ""
    if n == 1:
        return f"{where}{group.mean:.4f}{above} in one run. Another seed may differ."
    if group.margin is None:
        low, high = min(group.losses), max(group.losses)
        return f"{where}{n} runs between {low:.4f} and {high:.4f}{above}. An interval needs {ENOUGH}."
    mean = f"{group.mean:.4f} ± {group.margin:.4f}" if above_floor else loss_in_words(group.mean, group.margin)
    return f"{where}{mean}{above} over {n} seeds. A single run lands about {group.spread:.4f} from this mean."
