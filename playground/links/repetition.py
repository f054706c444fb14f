"""Repetition: whether a run came to the losses of the card it repeats, and what may be said where it did not."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from .card import RunCard


def machine_kind(device: str, precision: str, threads: int = 1) -> str:
    """What decides the last digits of a loss: instructions, number format, threads, torch, processor.

    The processor's name stands beside its instructions because torch's libraries choose their kernels by it.
    """
    version = torch.__version__
    if device == "cuda" and torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()[:40]} {precision}, torch {version}"
    if device == "cpu":
        instructions = torch.backends.cpu.get_cpu_capability()
        count = f"{threads} thread{'s' if threads > 1 else ''}"
        return f"cpu {instructions} {precision}, {count}, torch {version}, {processor_name()[:60]}"
    return f"{device} {precision}, torch {version}"


@cache
def processor_name() -> str:
    """The maker's name for this machine's processor; "unknown processor" where nobody says."""
    try:
        if platform.system() == "Linux":
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        if platform.system() == "Darwin":
            command = ("sysctl", "-n", "machdep.cpu.brand_string")
            return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, StopIteration, subprocess.SubprocessError):
        pass
    return platform.processor() or "unknown processor"


@dataclass(frozen=True)
class Repetition:
    """How a repeated run compares with its card."""

    kind: str
    """matched, differs, or open (nothing to compare yet)."""
    sentence: str


def repetition(card: RunCard, evaluations: Mapping[str, Sequence[float]], machine: str, *, over: bool) -> Repetition:
    """Compare the evaluations of a run of the same text and settings with the losses of a card, to four decimals.

    Args:
        evaluations: columns of `training.History.evaluations`.
        machine: the kind of machine it runs on.
        over: whether no more evaluations will come.
    """
    found = {
        int(step): (train, val)
        for step, train, val in zip(evaluations["step"], evaluations["train_loss"], evaluations["val_loss"])
    }
    common = [row for row in card.losses if row[0] in found]
    if not common:
        why = "This run was evaluated at none of the link's steps" if over else "The first loss comes in a moment"
        return Repetition("open", f"{why}, so there is nothing to compare." if over else f"{why}.")
    gaps = [
        (step, name, got, expected)
        for step, *pair in common
        for name, expected, got in zip(("training", "validation"), pair, found[step])
        if f"{got:.4f}" != f"{expected:.4f}"
    ]
    n = len(common)
    if not gaps:
        step, _, val = common[-1]
        losses = f"the training and validation losses at {n} evaluation{'s' if n > 1 else ''}"
        end = f"the last at step {step:,}: validation loss {val:.4f}"
        if n == len(card.losses):
            elsewhere = "" if card.machine == machine else f" {_made_on(card.machine, machine)}"
            return Repetition("matched", f"Matched to 4 decimals: {losses} are the link's, {end}.{elsewhere}")
        before = max(found) < min(row[0] for row in card.losses if row[0] not in found)
        ended = "this run ended before the others" if before else "it was not evaluated at the others"
        missing = ended if over else "it goes on"
        return Repetition(
            "matched" if over else "open", f"Matched to 4 decimals so far: {losses} are the link's, {end}; {missing}."
        )
    step, name, got, expected = gaps[-1]
    first = min(gap[0] for gap in gaps)
    words = f"Not the same: the {name} loss at step {step:,} is {got:.4f}, the link says {expected:.4f} "
    words += f"({abs(got - expected):.4f} {'more' if got > expected else 'less'})."
    words += f" The first difference is at step {first:,}." if first != step else ""
    return Repetition("differs", f"{words} {_made_on(card.machine, machine)}")


def _made_on(theirs: str, mine: str) -> str:
    """What two kinds of machine, theirs as a link has it, say about equal or other digits."""
    if not theirs:
        return "The link does not say on what kind of machine its losses were made."
    if mine == theirs:
        return (
            f"Both were made on the same kind of machine ({mine}), so either the program has changed since, or a "
            "library that it computes with."
        )
    if mine.startswith(f"{theirs}."):  # links once left out torch's last number and the processor's name
        return (
            f"The link's losses were made on a machine like this one as far as it says ({theirs}): it leaves out the "
            f"processor and torch's last number, on which the digits depend (this one: {mine})."
        )
    return (
        f"The link's losses were made on another kind of machine ({theirs}; this one: {mine}), which may round "
        "differently."
    )
