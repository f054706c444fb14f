"""Repeated runs: whether a run that repeats a link has the same losses, and why it may not."""

from __future__ import annotations

from ..links import Repetition


def repetition_in_words(found: Repetition) -> str:
    """How a repeated run compares with its link."""
    if not found.compared:
        if found.over:
            return "This run has no evaluation at the link's steps, so there is nothing to compare."
        return "The first loss comes in a moment."
    if found.gaps:
        gap = found.gaps[-1]
        return (
            f"Not the same: at step {gap.step:,} the {gap.split} loss is {gap.loss:.4f}, but {gap.expected:.4f} in the "
            f"link. The difference is {abs(gap.loss - gap.expected):.4f}. {_machines(found.theirs, found.mine)}"
        )
    n, (step, _, val) = len(found.compared), found.compared[-1]
    same = f"to 4 decimals at {n} evaluation{'s' * (n > 1)}. Validation loss {val:.4f} at step {step:,}."
    if not found.missing:
        return f"Matched {same}{'' if found.theirs == found.mine else f' {_machines(found.theirs, found.mine)}'}"
    ended = " This run ended earlier." if found.ended_early else " The two have no other evaluation in common."
    return f"Matched so far {same}{ended if found.over else ''}"


def _machines(theirs: str, mine: str) -> str:
    """What the kinds of machine say about equal or different digits."""
    if not theirs:
        return "The link does not name the kind of machine."
    if mine == theirs:
        return f"Both ran on the same kind of machine ({mine}). The program or a library has changed."
    return f"The link's run used another kind of machine ({theirs}). This machine may round differently ({mine})."
