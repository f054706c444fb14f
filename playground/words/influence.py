"""Where a model's words come from, in words: copied pieces, passages it learned from, and what the proof shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..data.judging import LONG
from ..data.languages.grammar import ENDS, NEXT, SPELLING, WORD
from ..data.languages.graph import CHANCE
from ..influence.proof import Trial, mean_effect
from ..influence.ranking import CORRELATION, Ranked
from ..influence.verbatim import Copied
from .numbers import brief, percent, share, signed
from .result import Result

NO_RULES = (CHANCE, NEXT, WORD, SPELLING, ENDS)
"""Kinds of tokens that no rule of a grammar's own decides."""
LEGEND = f"occurs in the training text, at least {LONG} characters in a row."
"""What the line under a piece of the answer means; after the word *Underlined*."""
SAME = 0.05
"""Shares of copied text that differ by less are as good as the same."""
RULE = 0.2
"""A rule is named that decides at least this part of the influence."""
MEASURE = "A passage's influence is how much its loss falls when these words are made likelier."
SAMPLED = "The text is long, so only the passages most like the selection and a random sample were measured."
KEPT_SAME = "Removed passages are replaced by others of the same length, so all other batches stay the same."


def copied_result(copied: Copied, start: int, end: int) -> Result:
    """Whether the characters from start to end of a text are copied, and how much of all, next to held-out text."""
    within = any(match.start <= start and end <= match.end for match in copied.matches)
    headline = "These words are part of a copied piece." if within else "These words are not copied as a whole."
    number = f"Of the whole answer, {percent(copied.share, 0)} is copied."
    if copied.usual is None:
        return Result(headline, number)
    number += f" For unseen text it would be {percent(copied.usual, 0)}."
    if copied.usual > copied.share - SAME:
        little = "Unseen text shares about as much or more with the training text, so copying says little here."
        return Result(headline, little, number)
    return Result(headline, number)


def times(what: str, count: int) -> str:
    """How often something occurs in the training text; empty if never."""
    return f"{what}: {'once' if count == 1 else f'{count:,} times'} in the training text." if count else ""


def ranked_result(ranked: Ranked) -> Result:
    """Which passages taught it, and how far to trust that."""
    if not ranked.raising:
        return Result("No passage makes these words likelier.")
    headline = "A hint: the model may have learned it here."
    moments = "the last weights" if ranked.moments == 1 else f"{ranked.moments} moments of the run"
    number = f"{ranked.measured:,} of {ranked.of:,} passages measured, at {moments}."
    trust = f"In our benchmark, predicted and actual effects have a rank correlation of {CORRELATION:.2f}."
    sampled = SAMPLED if ranked.measured < ranked.of else ""
    return Result(headline, number, " ".join(filter(None, (MEASURE, sampled, trust, "Only “Prove it” tests this."))))


def rule_sentence(ranked: Ranked) -> str:
    """The grammar rule that these passages carry; empty where none stands out."""
    own = [each for each in ranked.rules if each[0] not in NO_RULES]
    if not own or own[0][1] < RULE:
        return ""
    rule, part = own[0]
    return f"They show a grammar rule: {rule} ({percent(part, 0)} of their influence)."


def proof_result(trials: Sequence[Trial], before: float, passages: int, selected: str) -> Result:
    """What the selection is worth without so many passages, and in the control; `selected` are its words."""
    without, control = (
        math.exp(sum(getattr(trial, side) for trial in trials) / len(trials)) for side in ("without", "control")
    )
    mean, margin = mean_effect(trials)
    them, random = ("it", "one random other passage") if passages == 1 else ("them", f"{passages} random others")
    shown = share(without)
    size = f"below {shown[1:]}" if shown.startswith("<") else f"of {shown}"
    headline = f"Trained without {them}, the model gives “{selected}” a probability {size}."
    number = f"With all passages it gives {share(math.exp(before))}; without {random}, {share(control)}."
    if math.isinf(margin):
        return Result(headline, number, f"With one seed there is no interval. {KEPT_SAME}")
    number += f" The passages raise their log-probability by {signed(mean)} ± {brief(margin)} ({len(trials)} seeds)."
    certain = "Zero is inside, so this may be chance." if abs(mean) <= margin else "Zero is outside."
    return Result(headline, number, f"The ± is a 95 % interval over seeds. {certain} {KEPT_SAME}")


def score_sentence(count: int, correlation: float) -> str:
    """How well predictions of proven effects did."""
    if math.isnan(correlation):
        return f"{count} proofs so far. A rank correlation needs three with different predictions."
    return f"Rank correlation of predicted and actual effects over {count} proofs: {signed(correlation)}."
