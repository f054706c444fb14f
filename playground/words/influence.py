"""Where a model's words come from, in words: copied pieces, passages it learned from, and what the proof shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..data.judging import LONG
from ..data.languages.grammar import ENDS, NEXT, SPELLING, WORD
from ..data.languages.graph import CHANCE
from ..influence.proof import Trial, mean_effect
from ..influence.ranking import CORRELATION, HINT, Ranked
from ..influence.verbatim import Copied
from .numbers import brief, percent, share, signed
from .result import Result

NO_RULES = (CHANCE, NEXT, WORD, SPELLING, ENDS)
"""Kinds of tokens that no rule of a grammar's own decides."""
RULE = 0.2
"""A rule is named that decides at least this part of the influence."""
MEASURE = "A nudge towards these words also changes each passage: that change is its influence."
SAMPLED = "The text is long, so the passages most like the selection were measured, and a random sample."
KEPT_SAME = "Other passages of the same length replace them, so all other batches stay the same."


def copied_result(copied: Copied) -> Result:
    """How much is copied, compared with held-out text."""
    headline = f"{percent(copied.share, 0)} is copied word for word." if copied.matches else "Nothing is copied."
    number = "" if copied.usual is None else f"Held-out text of the same length: {percent(copied.usual, 0)}."
    return Result(headline, number, f"Copied means at least {LONG} characters in a row.")


def times(count: int) -> str:
    """How often a piece occurs."""
    return "once in the training text" if count == 1 else f"{count:,} times in the training text"


def ranked_result(ranked: Ranked) -> Result:
    """Which passages taught it, and how far to trust that."""
    if not ranked.raising:
        return Result("No passage raises these words.")
    hint = CORRELATION < HINT
    headline = (
        "A hint: the model may have learned it here." if hint else "The model learned it mostly from these passages."
    )
    moments = "the last weights" if ranked.moments == 1 else f"{ranked.moments} moments of the run"
    number = f"{ranked.measured:,} of {ranked.of:,} passages measured, at {moments}."
    trust = f"In our benchmark, predicted and actual effects have a rank correlation of {CORRELATION:.2f}."
    sampled = SAMPLED if ranked.measured < ranked.of else ""
    return Result(headline, number, " ".join(filter(None, (MEASURE, sampled, trust, "Only a proof is certain."))))


def rule_sentence(ranked: Ranked) -> str:
    """The grammar rule that these passages carry; empty where none stands out."""
    own = [each for each in ranked.rules if each[0] not in NO_RULES]
    if not own or own[0][1] < RULE:
        return ""
    rule, part = own[0]
    return f"They carry a grammar rule: {rule} ({percent(part, 0)} of their influence)."


def proof_result(trials: Sequence[Trial], before: float) -> Result:
    """What the selection is worth without the passages, and in the control."""
    without, control = (
        math.exp(sum(getattr(trial, side) for trial in trials) / len(trials)) for side in ("without", "control")
    )
    mean, margin = mean_effect(trials)
    headline = f"Without the ticked passages: {share(without)}."
    number = f"With them {share(math.exp(before))}, without as many random ones {share(control)}."
    if math.isinf(margin):
        return Result(headline, number, f"One seed shows no interval. {KEPT_SAME}")
    number += f" The passages add {signed(mean)} ± {brief(margin)} nats ({len(trials)} seeds)."
    certain = "Zero is inside, so this may be chance." if abs(mean) <= margin else "Zero is outside."
    return Result(headline, number, f"The ± is a 95 % interval over seeds. {certain} {KEPT_SAME}")


def score_sentence(count: int, correlation: float) -> str:
    """How well predictions of proven effects did."""
    if math.isnan(correlation):
        return f"{count} proofs so far. Three with different predictions give a rank correlation."
    return f"Rank correlation of predicted and actual effects over {count} proofs: {signed(correlation)}."
