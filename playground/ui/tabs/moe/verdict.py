"""A pair's result, answer first: a headline, the number behind it, facts, curves and details. All escaped."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from ....figures.pair import Curve, difference_lines, pair_curves, verdict_figure
from ....service.views import EQUAL_WORDS, NAMES, PairView
from ....training.comparison import SIDES
from ....training.verdict import mean_interval, still_learning
from ....words.corpus import overlap_warning
from ....words.pictures import difference_words, interval_words, pair_words
from ....words.training import in_steps
from ....words.verdict import verdict_result
from ... import theme
from ...panel import deed_button
from ...refusals import sentence
from ...under_way import left, progress

STILL = "Both were still learning: this compares how fast they start, not where they end."
CURVES = {"loss": "Losses", "difference": "Difference"}


def headline(view: PairView) -> str:
    """The lesson of the pair, in a few words."""
    verdict = view.verdict
    if verdict is None:
        return _why_none(view)
    return verdict_result(verdict, trained(view), active=view.active).headline


def _why_none(view: PairView) -> str:
    if view.active:
        return {"waiting": "In the queue.", "stopping": "Stopping …"}.get(view.state, "Training both …")
    reasons = {reason for side in view.sides.values() for reason in side.reasons}
    if "diverged" in reasons:
        return "No verdict: one of the two diverged."
    return "No verdict on these two." if view.withheld else "Not judged yet."


def trained(view: PairView) -> int:
    """The steps that its models have made."""
    return max((history.last_step for side in view.sides.values() for history in side.histories), default=0)


def about(view: PairView) -> str:
    """Which pair is shown."""
    if not view.sides:
        return html.escape(view.corpus)
    seeds = view.verdict.seeds if view.verdict and not view.active else view.seeds
    parts = [view.corpus, EQUAL_WORDS.get(view.equal or "", "sizes not equal"), f"{seeds} seed{'s' * (seeds != 1)}"]
    parts += [] if view.active else [in_steps(trained(view))]
    parts += ["recorded"] if view.state == "recorded" else []
    return " · ".join(html.escape(part) for part in parts if part)


def numbers(view: PairView) -> str:
    """The number behind the headline."""
    verdict = view.verdict
    if verdict is not None and math.isfinite(verdict.margin):
        sign = "lower" if verdict.difference < 0 else "higher"
        fresh = " on fresh text" * (view.matched is None)  # and not while they trained
        margin = f", ± {verdict.margin:.4f}" * verdict.margin_decides
        return f"MoE's loss{fresh} is <b>{abs(verdict.difference):.4f}</b> {sign}{margin}"
    losses = {NAMES[kind]: side.val_losses[-1] for kind, side in view.sides.items() if side.val_losses}
    if len(losses) == len(SIDES):
        return " · ".join(f"{name} <b>{loss:.4f}</b>" for name, loss in losses.items())
    return ""


def details(view: PairView) -> str:
    """How the interval was computed, and what it leaves open."""
    parts = []
    if view.verdict is not None:
        parts.append(verdict_result(view.verdict, trained(view)).details)
    if view.state == "finished" and view.message and not view.withheld:
        parts.append(view.message)
    more = view.state == "finished" and view.verdict is not None and view.verdict.seeds == 1
    button = more * deed_button("Train three seeds", "train_again", kind="ghost", data_with='{"seeds": 3}')
    return "".join(theme.quiet(sentence(part)) for part in parts if part) + button


def remarks(view: PairView) -> str:
    """What to know before believing the verdict."""
    copied = overlap_warning(view.baselines.overlap) if view.baselines else ""
    parts = [theme.notice(text, "warning") for text in (*view.notices, copied) if text]
    if view.withheld and not view.active:
        parts.append(theme.notice(view.withheld, "warning"))
    elif view.verdict is not None and not view.active and _still_learning(view):
        parts.append(theme.notice(STILL, "warning"))
    return "".join(parts)


def _still_learning(view: PairView) -> bool:
    """Whether the judged pairs were still learning at the end."""
    judged = [[each.evaluations for each in view.sides[side].histories[: view.verdict.seeds]] for side in SIDES]
    if not all(judged):
        return False
    losses = [[each["val_loss"] for each in x] for x in judged]
    return still_learning([x[0]["step"] for x in judged], losses, view.verdict)


# ---- facts -----------------------------------------------------------------------------------------------------------


def facts(view: PairView) -> str:
    """Memory and arithmetic of the mixture, as multiples of the dense model's; no arithmetic if it is the same."""
    dense, moe = (view.sides[side].config for side in SIDES)
    work = moe.flops_per_token() / dense.flops_per_token()
    same = f"{work:.1f}" == "1.0"
    return _fact(moe.n_parameters / dense.n_parameters, "the memory") + (
        "" if same else _fact(work, "the arithmetic per token")
    )


def speed_fact(speeds: dict[str, float | None] | None) -> str:
    """The MoE model's training speed as a multiple of the dense one's; a dash if not yet known."""
    known = speeds and all(speeds.values())
    return _fact(speeds["moe"] / speeds["dense"] if known else None, "the training speed")


def _fact(times: float | None, of: str) -> str:
    value = "–" if times is None else f"{times:#.2g} ×" if times < 0.95 else f"{times:.1f} ×"
    return f'<div class="stat"><b class="stat-value">MoE: {value}</b><span class="stat-note">{of}</span></div>'


# ---- pictures --------------------------------------------------------------------------------------------------------


def differences(view: PairView) -> list[float]:
    """Mixture minus dense at the end of each completed pair; for two finished models, of the pair just judged."""
    if view.verdict is None:
        return []
    if not view.active and view.verdict.seeds == 1:
        return [view.verdict.difference]
    pairs = zip(view.sides["dense"].histories, view.sides["moe"].histories)
    return [moe.val_loss - dense.val_loss for dense, moe in list(pairs)[: view.verdict.seeds]]


def interval(view: PairView) -> tuple[dict[str, Any] | None, str]:
    """The verdict as an interval about zero; while the first pair trains, where it is so far."""
    found, verdict = differences(view), view.verdict
    if view.active and not found:
        found = [each[max(each)] for each in along(view)]
    if not found and not view.active:
        return None, ""
    given = (found, verdict.difference, verdict.margin) if verdict and verdict.margin_decides else (found, None, None)
    return verdict_figure(*given), interval_words(*given)


def curve(view: PairView, kind: str) -> tuple[dict[str, Any], str]:
    """Chart and sentence of the difference during training with its interval, or of both losses."""
    end = max((side.planned_steps for side in view.sides.values()), default=None)
    if kind == "difference":
        figure, words = _difference(view, end)
    else:
        figure, words = _losses(view, end)
    figure["layout"]["uirevision"] += f" {view.id}"
    return figure, words


def _difference(view: PairView, end: int | None) -> tuple[dict[str, Any], str]:
    found = along(view)
    steps = sorted(set.intersection(*(set(each) for each in found))) if found else []
    rows = np.array([[each[step] for step in steps] for each in found]).reshape(len(found), len(steps))
    mean, margin = mean_interval(rows) if rows.size else (np.array([]), np.array([]))
    return difference_lines(steps, rows, mean, margin, end=end), difference_words(steps, mean, margin)


def along(view: PairView) -> list[dict[int, float]]:
    """Step → MoE loss minus dense loss, for each pair; a pair under way is left out until it is complete."""
    pairs = zip(view.sides["dense"].histories, view.sides["moe"].histories) if view.sides else ()
    found = []
    for pair in pairs:
        dense, moe = (dict(zip(h.evaluations["step"], h.evaluations["val_loss"])) for h in pair)
        found.append({step: moe[step] - dense[step] for step in dense.keys() & moe.keys()})
    whole = [each for each in found if len(each) == max(map(len, found))] if found else []
    return [each for each in whole if each]  # a pair under way has fewer, and joins once it is complete


def _losses(view: PairView, end: int | None) -> tuple[dict[str, Any], str]:
    drawn = [
        Curve(
            f"{NAMES[side]}, seed no. {i + 1}" if i else NAMES[side],
            side,
            history.evaluations["step"],
            history.evaluations["val_loss"],
            i == 0,
        )
        for side in SIDES
        for i, history in enumerate(view.sides[side].histories if view.sides else ())
        if history.evaluations["step"]
    ]
    rungs = view.baselines.losses() if view.baselines else []
    log_y = bool(rungs) and view.baselines.low_floor
    figure = pair_curves(drawn, rungs, end=end, log_y=log_y)
    return figure, pair_words(drawn)


# ---- progress --------------------------------------------------------------------------------------------------------


def bar(view: PairView) -> str:
    """The progress bar of a running comparison."""
    seed = max((len(side.histories) for side in view.sides.values()), default=1)
    last = min((side.histories[-1].last_step for side in view.sides.values() if side.histories), default=0)
    planned = max((side.planned_steps for side in view.sides.values()), default=0)
    words = f"{f'Seed {seed} of {view.seeds} · ' * (view.seeds > 1)}step {last:,} of {planned:,}{left(view.time_left)}"
    return progress(view, view.share_done, words[:1].upper() + words[1:])
