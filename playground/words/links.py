"""Whether a run that repeats a link came to its losses, and what may be behind it where it did not."""

from __future__ import annotations

from ..links import Repetition


def repetition_in_words(found: Repetition) -> str:
    """How a repeated run compares with its link."""
    if not found.compared:
        if found.over:
            return "This run was evaluated at none of the link's steps, so there is nothing to compare."
        return "The first loss comes in a moment."
    if found.gaps:
        gap, first = found.gaps[-1], found.gaps[0].step
        more = "more" if gap.loss > gap.expected else "less"
        words = (
            f"Not the same: the {gap.split} loss at step {gap.step:,} is {gap.loss:.4f}, the link says "
            f"{gap.expected:.4f} ({abs(gap.loss - gap.expected):.4f} {more})."
        )
        words += f" The first difference is at step {first:,}." if first != gap.step else ""
        return f"{words} {_made_on(found.theirs, found.mine)}"
    n, (step, _, val) = len(found.compared), found.compared[-1]
    losses = f"the training and validation losses at {n} evaluation{'s' if n > 1 else ''} are the link's"
    last = f"the last at step {step:,}: validation loss {val:.4f}"
    if not found.missing:
        elsewhere = "" if found.theirs == found.mine else f" {_made_on(found.theirs, found.mine)}"
        return f"Matched to 4 decimals: {losses}, {last}.{elsewhere}"
    ended = "this run ended before the others" if found.ended_early else "it was not evaluated at the others"
    return f"Matched to 4 decimals so far: {losses}, {last}; {ended if found.over else 'it goes on'}."


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
