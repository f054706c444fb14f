"""Where a model's words come from, in words: copied pieces, passages it learned from, and what the proof shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..data.languages.grammar import ENDS, NEXT, SPELLING, WORD
from ..data.languages.graph import CHANCE
from ..influence.proof import Trial, mean_effect
from ..influence.ranking import CORRELATION, Ranked
from ..influence.verbatim import FREQUENT, LONG, SAME, Copied, Match
from .numbers import beside_zero, estimate, listed, percent, share, signed
from .result import Result

NO_RULES = (CHANCE, NEXT, WORD, SPELLING, ENDS)
"""Kinds of tokens that no rule of a grammar's own decides."""
HINT = "A hint: this passage may have helped most."
LITTLE = "This passage may have helped a little more than others."
LOWERING = "A hint: these passages may make the words less likely. Small values may be chance."
COMMON = "Any text in this style repeats such pieces, so copying proves nothing here."
RARE = "So the model may know {} by heart."
RULE = 0.2
"""A rule is named that decides at least this part of the influence."""
SLIGHT = 0.1
"""With fewer seeds than three, an effect up to so many nats (a tenth of the probability) is not clear."""
MEASURE = (
    "Influence estimates how much reading a passage raised the probability of these words. It asks: after one small "
    "training step on the passage, how much likelier would they be?"
)
TRUST = (
    "In our benchmark, the estimate hardly predicted the effect of removing a fifth of the passages. "
    f"Its rank correlation was {CORRELATION:.2f}: 1 is perfect, 0 is chance. Counting shared pieces did no worse."
)
PROVE = "Only “Prove it” tests this."
SAMPLED = "The text is long, so we measured only a random sample and the passages most like the selection."
FEWEST_SEEDS = 3
"""With fewer, an interval over seeds is so wide that it says nothing."""
FEWEST_PROOFS = 5
"""With fewer sets of passages, a rank correlation is mostly luck."""
AVERAGES = "Averages over seeds are geometric means."
ANOTHER = "Test the same passages again to add a seed; three give an interval."
PROOFS = ("Removed passages", "Influence, largest = 1", "These words get", "With random passages removed")
"""The head of a table of proofs."""
KEPT_SAME = "Removed passages are replaced by others of the same length, so all other batches stay the same."


def copied_sentence(copied: Copied) -> str:
    """How much of the whole answer is copied, next to held-out text."""
    pieces = f"of {LONG} characters or more"
    if not copied.share:
        return f"No piece {pieces} is copied."
    part = "parts of this"
    number = f"{percent(copied.share, 0)} of this answer also occurs in the training text, in pieces {pieces}."
    if copied.whole:
        part, number = "this", "The whole answer occurs in the training text."
    if copied.usual is None:
        return number
    meaning = RARE.format(part) if copied.unusual else COMMON if copied.usual > SAME else ""
    return f"{number} A text that the model never saw overlaps by {percent(copied.usual, 0)}. {meaning}".strip()


def copied_result(copied: Copied, match: Match) -> Result:
    """The answer for words within a piece that the model knows by heart."""
    known, number = "Copied: the underlined piece", copied_sentence(copied)
    if copied.whole:
        known, number = "The whole answer", ""
    return Result(f"{known} occurs {times(match.count)} in the training text.", number)


def passage_result(selected: str, count: int, ranked: Ranked | None) -> Result:
    """The answer for all other words, which occur so often; `ranked` is None without a search."""
    number = f"“{selected}” occurs {times(count)} in the training text."
    if ranked is None:
        return Result(number)
    if count >= FREQUENT:
        return Result("No single passage explains it.", number)
    return Result(HINT if ranked.raising else "No passage makes these words likelier.", number)


def times(count: int) -> str:
    """How often something occurs."""
    return {0: "nowhere", 1: "once"}.get(count, f"{count:,} times")


def ranking_details(ranked: Ranked) -> str:
    """How far to trust the passages found, and the grammar rule that they carry, if one stands out."""
    moments = "the last weights" if ranked.moments == 1 else f"{ranked.moments} moments of the run"
    some = ranked.measured < ranked.of
    which = f"{ranked.measured:,} of the {ranked.of:,}" if some else "all"
    number = f"We measured {which} training passages, at {moments}."
    sampled = SAMPLED if some else ""
    rule, part = next((each for each in ranked.rules if each[0] not in NO_RULES), ("", 0.0))
    shows = (
        f"{percent(part, 0)} of the passages' influence comes from one grammar rule: {rule}." if part >= RULE else ""
    )
    return " ".join(filter(None, (MEASURE, number, sampled, TRUST, PROVE, shows)))


def strength(effect: float, most: float) -> str:
    """A passage's influence beside that of the strongest."""
    return f"Influence: {percent(effect / most, 0)} of the first passage's."


def proof_result(
    trials: Sequence[Trial], before: float, passages: Sequence[int], removed: int, selected: str
) -> Result:
    """What the selection is worth without the passages of these numbers, and in the control.

    Args:
        before: its log-probability after training on everything, in nats.
        removed: how many passages are removed, with all copies.
    """
    without, control = (mean_share([getattr(trial, side) for trial in trials]) for side in ("without", "control"))
    mean, margin = mean_effect(trials)
    n, one = len(trials), len(passages) == 1
    which = f"passage{'s' * (not one)} {listed([str(each) for each in passages])}"
    both = "Both" if removed == 2 else f"All {removed}"
    copies = f" {both} copies were removed." if one else f" Counting their copies, {removed} passages were removed."
    copies *= removed > len(passages)
    random = "one random passage" if removed == 1 else f"{removed} random passages"
    chance = margin if n >= FEWEST_SEEDS else max(SLIGHT, abs(before - sum(t.control for t in trials) / n))
    headline = f"Without {which}, “{selected}” gets {without}."
    number = f"With {random} removed instead: {control}."
    number += f" Both are averages over {n} seeds." * (n > 1)
    clear, size = abs(mean) > chance, abs(mean)
    if clear and n >= FEWEST_SEEDS:
        effect = f"{times_as(size, 'about ')} times {'less' if mean > 0 else 'more'} likely"
        interval = f"95 % interval: {times_as(size - margin)} to {times_as(size + margin)}"
        number += f" So without {'it' if one else 'them'}, “{selected}” is {effect} ({interval})."
    number += f" With all passages: {share(math.exp(before))}.{copies}"
    if not clear:
        headline, number = "No clear effect.", f"{headline} {number}"
    if n < FEWEST_SEEDS:
        each = f"Without the passages, seed by seed: {listed([share(math.exp(t.without)) for t in trials])}."
        each = f"{each} {AVERAGES}" if n > 1 else ""
        return Result(headline, f"{number} {ANOTHER}", f"{each} {KEPT_SAME}".strip())
    adds = f"Compared with random passages, these add {estimate(mean, margin)} to the log-probability."
    return Result(
        headline, number, f"{adds} {beside_zero(mean, margin)} The ± is a 95 % interval. {AVERAGES} {KEPT_SAME}"
    )


def times_as(nats: float, about: str = "") -> str:
    """How many times as likely a rise by so many nats makes something, to two digits, as "1,600"."""
    times = math.exp(min(nats, 30.0))
    return "over a million" if times > 1e6 else f"{about}{float(f'{times:.2g}'):,.10g}"


def proof_row(passages: Sequence[int], influence: float, trials: Sequence[Trial]) -> tuple[str, ...]:
    """One line of the table of all proofs, see PROOFS."""
    named = listed([str(each) for each in passages])
    return named, f"{influence:.2f}", mean_share([t.without for t in trials]), mean_share([t.control for t in trials])


def mean_share(nats: Sequence[float]) -> str:
    """The geometric mean of some log-probabilities, as a share."""
    return share(math.exp(sum(nats) / len(nats)))


def score_sentence(count: int, correlation: float) -> str:
    """How well the predicted effects of so many sets of passages did, whatever words they were about."""
    tested = f"In all, {count} sets of passages were tested with this model"
    if count < FEWEST_PROOFS:
        return f"{tested}: too few for a rank correlation."
    return f"{tested}. Their predicted and actual effects have a rank correlation of {signed(correlation)}."
