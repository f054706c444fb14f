"""What pictures show: the sentence under each chart of a run, a prediction, a pair or a class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data import Baselines
from .baselines import BEST, beside_guessing, from_the_best
from .numbers import beside_zero, estimate, listed, percent, share, signed
from .result import Result

# ---- a run -----------------------------------------------------------------------------------------------------------


def loss_words(evaluations: Mapping[str, Sequence[float]] | None, baselines: Baselines | None = None) -> str:
    """The last validation loss, and the last baseline that it has passed."""
    pairs = zip(evaluations["step"], evaluations["val_loss"]) if evaluations else ()
    measured = [(step, loss) for step, loss in pairs if math.isfinite(loss)]
    if not measured:
        return f"No loss has been measured yet{'; the dashed lines are baselines' if baselines else ''}."
    step, loss = measured[-1]
    where = f"Validation loss {loss:.4f} at step {step:,.0f}"
    if baselines is None:
        return f"{where}."
    if baselines.floor is not None:
        return f"{where}, {from_the_best(loss - baselines.floor)}."
    passed, unsure = baselines.passed(loss), baselines.unsure(loss)
    if unsure:
        return f"{where}, below the {unsure} line, but not clearly."
    return f"{where}, {f'below the {passed} line' if passed else beside_guessing(baselines, loss)}."


def gradients_words(parts: Sequence[str], steps: Sequence[int], norms: np.ndarray) -> str:
    """The part with the longest gradient now; `norms` (parts, steps)."""
    last = norms[:, -1]
    if not np.isfinite(last).any():
        return f"The gradients at step {steps[-1]:,} are not numbers: the run diverged."
    longest = int(np.nanargmax(last))
    return f"At step {steps[-1]:,} {parts[longest]} has the largest gradient norm ({last[longest]:.2g})."


def similar_words(similarity: np.ndarray, words: Sequence[str], part: bool = False) -> str:
    """The closest pair and the most opposed one; `part`: these are only the first words of a vocabulary."""
    rows, columns = np.triu_indices(len(words), 1)
    pairs = np.asarray(similarity, dtype=np.float64)[rows, columns]
    most, least = (
        f"“{words[rows[i]]}” and “{words[columns[i]]}” ({signed(pairs[i])})" for i in (pairs.argmax(), pairs.argmin())
    )
    among = f"Among the first {len(words)} words, most" if part else "Most"
    return f"{among} similar by cosine: {most}. Least similar: {least}. Unrelated words are near 0."


# ---- predictions -----------------------------------------------------------------------------------------------------


KNOWS_NOTHING = "Before training, it guesses at random."


def expected(
    labels: Sequence[str],
    now: Sequence[float],
    before: Sequence[float] | None = None,
    when: tuple[str, str] = ("before", "now"),
) -> str:
    """The most probable token now, and the one before; `when` names the two."""
    best = int(np.argmax(now))
    if before is None:
        return f"Most probable {when[1]}: “{labels[best]}” with {share(now[best])}."
    first = int(np.argmax(before))
    if first == best:
        return f"“{labels[best]}” stays the most probable: {share(before[best])} → {share(now[best])}."
    then, change = f"“{labels[first]}” with {share(before[first])}", f"{share(before[best])} → {share(now[best])}"
    return f"Most probable {when[0]}: {then}; {when[1]}: “{labels[best]}”, {change}."


def temperatures_words(labels: Sequence[str], by_temperature: Mapping[float, Sequence[float]]) -> str:
    """How much of the probability the likeliest token has at the lowest and the highest temperature."""
    best = int(np.argmax(by_temperature[min(by_temperature)]))
    ends = [f"{share(by_temperature[t][best])} at {t:g}" for t in sorted({min(by_temperature), max(by_temperature)})]
    return f"“{labels[best]}” has {' and '.join(ends)}. Temperature never changes the order."


def bits_words(bits: Mapping[str, np.ndarray]) -> str:
    """What each player of a game has paid so far, the least first."""
    if not len(next(iter(bits.values()), ())):
        return ""
    totals = sorted((float(np.sum(costs)), BEST if player == "floor" else player) for player, costs in bits.items())
    return f"Bits paid so far, fewest first: {', '.join(f'{player} {total:.1f}' for total, player in totals)}."


def times_words(
    lengths: Sequence[int], cached: Sequence[float], plain: Sequence[float], context: int | None = None
) -> str:
    """How much faster the cache was at the last point before the context was full; times in milliseconds."""
    last = max((i for i, length in enumerate(lengths) if context is None or length <= context), default=-1)
    with_it, without = cached[last], plain[last]
    words = f"At the end, a token took {with_it:.2f} ms with the cache and {without:.2f} ms without"
    words += f", {without / with_it:.1f} times as long." if with_it else "."
    return words


# ---- two models ------------------------------------------------------------------------------------------------------


def difference_words(steps: Sequence[int], mean: np.ndarray, margin: np.ndarray) -> str:
    """The difference of two models at the last step, for screen readers."""
    if not len(steps):
        return "The difference appears with the first evaluation of both."
    around = f" ± {margin[-1]:.4f}" if math.isfinite(margin[-1]) else ""
    return f"At step {steps[-1]:,}: {signed(mean[-1], 4, plus=True)}{around}."


def pair_words(curves: Sequence[Any]) -> str:
    """The last losses of both models' first curves; `curves` have `kind`, `is_first` and `y`."""
    last = {c.kind: c.y[-1] for c in curves if c.is_first and len(c.y) and math.isfinite(c.y[-1])}
    if len(last) < 2:
        return "Both curves will appear here: a solid line for dense, a dashed one for MoE."
    return f"First seed: dense {last['dense']:.4f}, MoE {last['moe']:.4f}."


def interval_words(differences: Sequence[float], mean: float | None, margin: float | None) -> str:
    """The differences by seed, and whether their interval excludes zero."""
    if not differences:
        return ""
    words = f"MoE minus dense by seed: {', '.join(signed(d, 4) for d in differences)}."
    if mean is None or margin is None:
        return words
    return f"{words} {beside_zero(mean, margin)}"


# ---- parts of a model ------------------------------------------------------------------------------------------------


def appearance_words(name: str, found: Any, ends: tuple[float, float]) -> Result:
    """When a head began to attend to what `name` says, such as "the token before".

    `found` is the Appearance of inspection.replay, or None; `ends` the strongest head's weight there at the first
    snapshot and at the last.
    """
    if math.isnan(ends[1]):
        return Result("This prompt cannot show this habit.", f"Nothing in it lets a head attend to {name}.")
    if found is None:
        raised = 0 < ends[1] <= ends[0]
        said = f"Training did not raise attention to {name}." if raised else f"No head learned to attend to {name}."
        return Result(
            said, f"The highest mean weight on {name} is {ends[1]:.2f} at the end, {ends[0]:.2f} at the start."
        )
    rose = f"Its mean weight there rose from {found.score_first:.2f} to {found.final:.2f}."
    middle = f"It was halfway up between steps {found.before:,} and {found.after:,} (shaded)."
    return Result(f"Head {found.layer}.{found.head} learned to attend to {name}.", f"{rose} {middle}")


def worth_words(
    costs: np.ndarray,
    margins: np.ndarray,
    first: np.ndarray,
    before: float,
    judged: str,
    names: Sequence[Sequence[str]],
) -> Result:
    """The part without which the loss rises most, those too close to rank, and how many make no difference.

    Args:
        costs, margins: (R, C) nats, and half the widths of their 95 % intervals; infinite where there is none.
        first: (R, C) the parts that share the first place.
        before: the loss with all parts.
        judged: the text, in words.
        names: R rows of C names of parts.
    """
    costs, margins = np.asarray(costs, dtype=np.float64), np.asarray(margins, dtype=np.float64)
    details = f"With all parts the loss is {before:.4f}, on {judged}."

    def by(place: tuple[int, ...]) -> str:
        cost, margin = abs(float(costs[place])), float(margins[place])
        return estimate(cost, margin, 4) if math.isfinite(margin) else f"{cost:.4f}"

    top, lowest = (np.unravel_index(int(place), costs.shape) for place in (costs.argmax(), costs.argmin()))
    rises, number = f"The loss rises most without {names[top[0]][top[1]]}.", f"It rises by {by(top)}."
    if not np.isfinite(margins).all():
        return Result(rises, number, f"{details} One window is not enough to rule out chance.")
    if idle := int((np.abs(costs) <= margins).sum()):
        details += (
            f" {idle} of {costs.size} parts, shown in parentheses, make{'s' * (idle == 1)} no measurable difference."
        )
    if not (costs > margins).any():
        falls = costs[lowest] < -margins[lowest]
        number = f"Without {names[lowest[0]][lowest[1]]} the loss even falls, by {by(lowest)}." if falls else ""
        return Result("No single part is clearly needed on this text.", number, details)
    near = [names[row][column] for row, column in zip(*np.nonzero(first)) if (row, column) != top]
    if near and first[top]:
        number += f" It may rise as much without {listed(near) if len(near) < 5 else f'{len(near)} others'}."
    return Result(rises, number, details)


def lens_words(chances: np.ndarray, ranks: np.ndarray, stages: Sequence[str], token: str, answer: str) -> str:
    """How the answer after a token came to the lead; probabilities and ranks by stage."""
    stage = len(stages)
    while stage > 0 and ranks[stage - 1] == 1:
        stage -= 1
    path = f"After “{token}”, “{answer}” goes from {percent(chances[0])} at the {stages[0]} to {percent(chances[-1])}"
    if stage == len(stages):
        return f"{path} at the end (rank {int(ranks[-1]):,})."
    if stage == 0:
        return f"{path}. It leads from the start."
    return f"{path}. It takes the lead for good at {stages[stage]}."
