"""What a pair looks like: from a PairView to curves, verdict, progress and sentences. No wiring here."""

from __future__ import annotations

import html
import math
from typing import Any

from ....figures.pair import Curve, describe_pair, describe_verdict, pair_curves, verdict_figure
from ....model.matched_pair import MatchedPair
from ....service.views import EQUAL_WORDS, NAMES, PairView, SideView
from ....training import History
from ....training.comparison import SIDES
from ....training.verdict import still_learning
from ....words.matched_pair import matched_in_words, sum_per_layer
from ....words.verdict import still_learning_in_words, verdict_in_words
from ... import theme
from ...followers import in_line
from ...refusals import sentence
from ...theme import duration, quiet, table

X_CHOICES = (("steps", "step"), ("tokens", "tokens"), ("FLOPs", "flops"), ("seconds", "seconds"))
Y_CHOICES = (("loss", "loss"), ("above the floor", "gap"))


def curves(view: PairView | None, x: str = "step", y: str = "loss") -> tuple[dict[str, Any], str]:
    """The figure of both curves and its sentence."""
    rungs = view.baselines.losses() if view and view.baselines else []
    drawn = [
        Curve(
            f"{NAMES[side]}, seed no. {i + 1}" if i else NAMES[side],
            side,
            _along(view.sides[side], history, x),
            history.evaluations["val_loss"],
            i == 0,
            view.sides[side].floor,
        )
        for side in SIDES
        for i, history in enumerate(view.sides[side].histories if view and view.sides else ())
        if history.evaluations["step"]
    ]
    end = _end(view, x) if view and view.sides else None
    recorded = view is not None and view.state == "recorded"
    figure = pair_curves(drawn, rungs, x=x, end=end, above_floor=y == "gap", recorded=recorded)
    if view is not None:
        figure["layout"]["uirevision"] += f" {view.id}"
    words = describe_pair(drawn, view is None or view.alike)
    if y == "gap" and any(curve.floor is None for curve in drawn):
        of_whom = "This text" if view.alike else "One of the two texts"
        words = f"{of_whom} has no known floor, so the losses themselves are drawn. {words}"
    return figure, words


def _along(side: SideView, history: History, x: str) -> list[float]:
    if x == "seconds":
        return history.evaluations["seconds"]
    each = {
        "step": 1,
        "tokens": side.tokens_per_step,
        "flops": side.tokens_per_step * side.config.flops_per_token(training=True),
    }[x]
    return [step * each for step in history.evaluations["step"]]


def _end(view: PairView, x: str) -> float | None:
    if x == "seconds":
        return None
    ends = []
    for side in view.sides.values():
        cost = side.config.flops_per_token(training=True) if x == "flops" else 1
        ends.append(side.planned_steps * (1 if x == "step" else side.tokens_per_step) * cost)
    return max(ends)


# ---- the verdict -----------------------------------------------------------------------------------------------------


def verdict(view: PairView | None) -> str:
    """The verdict in words, or why there is none."""
    if view is None:
        return ""
    parts = []
    if view.verdict is not None:
        words = verdict_in_words(view.verdict, _equal(view))
        kind = "good" if view.verdict.is_clear else "info"
        more = view.seeds - view.verdict.seeds
        if view.active and more > 0:
            words = f"So far: {words}"
        if view.matched is None:
            words += " Both were scored anew, on fresh text."
        parts.append(theme.notice(words, kind))
        if not view.active and (still := _still_learning(view)):
            parts.append(theme.notice(still, "warning"))
        if view.baselines is not None and view.baselines.floor is not None and view.verdict.is_clear:
            parts.append(quiet(_beside_the_gap(view)))
    if view.withheld:
        parts.append(theme.notice(view.withheld, "warning"))
    if not parts:
        waiting = "The verdict comes with the first completed pair." if view.active else "There is no verdict yet."
        waiting = "The two are being judged on fresh text …" if view.state == "recorded" else waiting
        parts.append(quiet(waiting))
    return "".join(parts)


def _equal(view: PairView) -> str:
    """What the two have alike, in words."""
    return EQUAL_WORDS.get(view.equal or "", "sizes that are not equal")


def _still_learning(view: PairView) -> str:
    """Whether the pairs that were judged were stopped on their way, in words."""
    judged = [[each.evaluations for each in view.sides[side].histories[: view.verdict.seeds]] for side in SIDES]
    if not all(judged):
        return ""
    losses = [[each["val_loss"] for each in x] for x in judged]
    return still_learning_in_words(still_learning([x[0]["step"] for x in judged], losses, view.verdict))


def _beside_the_gap(view: PairView) -> str:
    losses = view.sides["dense"].val_losses[: view.verdict.seeds]  # of another pair that is under way, not yet
    gap = sum(losses) / len(losses) - view.baselines.floor if losses else math.nan
    if not gap > 0:
        return ""
    share = 100 * abs(view.verdict.difference) / gap
    return f"That is {share:.0f} % of what the dense model still lacks to the floor ({gap:.4f} nats)."


def differences(view: PairView | None) -> list[float]:
    """Mixture minus dense at the end of each completed pair; of two finished models the one that was just judged."""
    if view is None or view.verdict is None:
        return []
    if not view.active and view.verdict.seeds == 1:
        return [view.verdict.difference]
    pairs = zip(view.sides["dense"].histories, view.sides["moe"].histories)
    return [moe.val_loss - dense.val_loss for dense, moe in list(pairs)[: view.verdict.seeds]]


def verdict_chart(view: PairView | None) -> tuple[dict[str, Any] | None, str]:
    """The verdict as points about zero."""
    found = differences(view)
    if not found:
        return None, ""
    margin = view.verdict.margin if math.isfinite(view.verdict.margin) else None
    given = (found, view.verdict.difference, margin)
    return verdict_figure(*given), describe_verdict(*given)


# ---- progress --------------------------------------------------------------------------------------------------------


def status(view: PairView | None) -> str:
    """How far it is: a title, a bar, and what should be known."""
    if view is None:
        return theme.notice(
            "Nothing to compare yet: press Train both, and both curves appear here within seconds.", "info"
        )
    title = f"<h3>{html.escape(view.name)}</h3>"
    notices = "".join(theme.notice(text, "warning") for text in view.notices)
    if view.state == "recorded":
        words = "These two ship with the project. Press Train both to make a pair of your own."
        return f'<div class="run-title">{title}{theme.badge("recorded")}</div>{quiet(words)}{notices}'
    if view.state == "failed":
        return f'<div class="run-title">{title}</div>{theme.notice(sentence(view.message), "error")}'
    if view.state == "finished":
        said = theme.notice(sentence(view.message), "good") if view.message and not view.withheld else ""
        return f'<div class="run-title">{title}</div>{said}{notices}'
    if view.state == "waiting":
        return f'<div class="run-title">{title}{theme.badge("in line")}</div>{theme.progress(0.0, in_line(view))}'
    words = view.message
    if view.state == "training":
        seed = max((len(side.histories) for side in view.sides.values()), default=1)
        steps = ", ".join(
            f"{side.name} step {side.histories[-1].last_step:,} of {side.planned_steps:,}"
            for side in view.sides.values()
            if side.histories
        )
        left = f", about {duration(view.time_left)} left" if view.time_left else ""
        words = (f"Seed {seed} of {view.seeds}: " if view.seeds > 1 else "") + steps + left
    bar = theme.progress(view.share_done, words)
    return f'<div class="run-title">{title}{theme.badge("live", "moe")}</div>{bar}{notices}'


def why_asleep(view: PairView | None) -> str:
    """Why a button sleeps."""
    if view is not None and view.state == "stopping":
        return "Stopping; what was learned is kept."
    if view is not None and view.state == "waiting":
        return "Stop leaves the line. Train both wakes up when this comparison is over."
    if view is not None and view.active:
        return "Train both wakes up when this comparison is over. You may close this page: it goes on."
    return "Stop wakes up while a comparison is going on."


def is_over(side: SideView, seeds: int) -> bool:
    """Whether this side has nothing left to do: all seeds are done, or it ended early, after which none begins."""
    return len(side.reasons) >= seeds or any(reason != "done" for reason in side.reasons)


# ---- the sum ---------------------------------------------------------------------------------------------------------


def sum_of(matched: MatchedPair) -> str:
    """How the two were made equal, as a sentence and a small table of one block's feed-forward part."""
    rows = [[what, how, f"{whole:,}", f"{used:,}"] for what, how, whole, used in sum_per_layer(matched)]
    shown = table(("one block", "matrices", "stored", "per token"), rows)
    return f"{quiet(matched_in_words(matched))}{shown}"
