"""Repeated runs: whether a run that repeats a link has the same losses, and why it may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..links import RunCard


def repetition_in_words(card: RunCard, evaluations: Mapping[str, Sequence[float]], machine: str) -> tuple[str, str]:
    """The tone and words of a notice: how a repeated run's losses compare with those on its card.

    Args:
        evaluations: columns of `training.History.evaluations`.
        machine: the kind of machine it runs on.
    """
    found = dict(zip(evaluations["step"], evaluations["val_loss"]))
    compared = [(step, found[step], expected) for step, _, expected in card.losses if step in found]
    if not compared:
        return "info", "The first loss comes in a moment."
    theirs = f", the link's run on “{card.machine}”" if card.machine else ". The link does not name its machine"
    machines = "" if card.machine == machine else f" It ran on “{machine}”{theirs}."
    step, loss, expected = compared[-1]
    if gaps := [row for row in compared if f"{row[1]:.4f}" != f"{row[2]:.4f}"]:
        step, loss, expected = gaps[-1]
        why = machines or " Both ran on the same kind of machine, so the program or a library has changed."
        return "warning", f"Not the same: validation loss {loss:.4f} at step {step:,}, {expected:.4f} in the link.{why}"
    n, so_far = len(compared), " so far" * (len(compared) < len(card.losses))
    same = f"Matched{so_far} to 4 decimals at {n} evaluation{'s' * (n > 1)}."
    return "good", f"{same} Validation loss {loss:.4f} at step {step:,}.{machines}"
