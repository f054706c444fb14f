"""A run's result, answer first: a headline about its text, what it is, its loss, and the details. All escaped."""

from __future__ import annotations

import html
import math

from ....data import LANGUAGES
from ....service.views import RunView
from ....training.states import BELOW, BY_HEART, DIVERGED, LEARNING, LEVEL, OVERFITTING, UNMASKED
from ....words import states
from ....words.baselines import equally_likely, passed_headline
from ....words.corpus import overlap_warning
from ....words.judging import judged_headline
from ....words.training import ended_early, in_steps, stopped_at
from ... import theme
from ...refusals import sentence
from ...under_way import left, ordinal, progress
from . import speaking
from .watch import cards, resume_label, seconds_of

SURE_AFTER = 5.0
"""Seconds of steps before the bar says how long they will take."""


def headline(view: RunView) -> str:
    """The answer in at most twelve words: how good its text is, or what its losses say."""
    if view.state == "waiting":
        return f"{ordinal(view.place or 1)} in the queue."
    if view.history.val_loss is None:
        return "Getting ready …" if view.active else "This model came without a record of its training."
    if view.active and view.history.evaluations["step"][-1] == 0:
        return "Learning …"  # measurements before the first step say nothing about the run
    state, shares = view.standing_of_model, speaking.shares(view)
    if state.kind in (DIVERGED, UNMASKED, BELOW, BY_HEART, OVERFITTING):
        return states.headline(state)
    if speaking.is_judging(view):
        return f"Checking its {LANGUAGES[view.language].units[1]} …"
    if shares and (not view.active or any(share.right for share in shares.values())):
        last, language = [*shares.values()][-1], LANGUAGES[view.language]
        return judged_headline(last, language, nearly_best=bool(speaking.why_faulty(view)))
    if view.active:
        return passed_headline(view.baselines, view.history.val_loss, "So far") if view.baselines else "Learning …"
    if view.baselines is None:
        return states.headline(state)
    course = {LEARNING: "Still falling", LEVEL: "Levelled off"}.get(state.kind, "") if view.used is None else ""
    return passed_headline(view.baselines, view.of_model.val_loss, course)


def about(view: RunView) -> str:
    """Which run this is: its name, text and steps, and whether it is live."""
    planned, finished = view.history.last_step, view.history.finished or {}
    if view.active:
        planned, finished = view.planned_steps, {}
    steps = stopped_at(finished) or (in_steps(planned) if planned else "")
    steps = f"step {view.used:,} of {planned:,}" if view.used is not None else steps
    came = ("recorded" if view.history.last_step else "imported") if view.from_before else ""
    text = view.corpus if view.corpus and view.corpus.lower() not in view.name.lower() else ""
    parts = (view.name, text, steps, "live" if view.active else came)
    return " · ".join(f"<bdi>{html.escape(part)}</bdi>" for part in parts if part)


def numbers(view: RunView) -> str:
    """The number behind the headline, and the best possible one."""
    history, baselines = view.of_model, view.baselines
    value = history.val_loss
    if value is None:
        return ""
    if not math.isfinite(value):
        return "Loss: not a number"
    words = f"Loss <b>{value:.3f}</b>"
    if baselines is not None and baselines.floor is not None:
        words += f", best possible {baselines.floor:.3f}"
    return words + f" · perplexity {equally_likely(value)}"


def tuned_numbers(view: RunView, changed: str) -> str:
    """The numbers of a model trained further: how its losses changed, which baselines of the new text it beats, and
    since when it overfits."""
    state, loss, baselines = view.standing_of_model, view.of_model.val_loss, view.baselines
    beats = f"\n{passed_headline(baselines, loss, 'On the new text')}" if baselines and loss is not None else ""
    overfits = f"\n{states.headline(state)}" * (state.kind == OVERFITTING)
    return html.escape(changed + beats + overfits).replace("\n", "<br>")


def why(view: RunView) -> str:
    """Why a run ended early, what overfitting is, or why a text is worse than its loss; and what a text that repeats
    itself leaves open."""
    copied = view.baselines.overlap if view.baselines and view.history.val_loss is not None else 0.0
    return " ".join(filter(None, (_why(view), overlap_warning(copied))))


def _why(view: RunView) -> str:
    finished, history = view.history.finished or {}, view.history
    if finished.get("reason") == "risen" and history.best and not view.active:
        scored = sum(step > history.best[0] for step in history.evaluations["step"])
        return html.escape(ended_early(history.last_step, view.planned_steps or history.last_step, scored))
    state = view.standing_of_model
    return states.overfits(state) if state.kind == OVERFITTING else html.escape(speaking.why_faulty(view))


def details(view: RunView) -> str:
    """Details of how the run went: cards, what is left to learn, how it ended."""
    parts = []
    if view.state == "finished":
        parts.append(theme.notice(_ended(view), states.TONES[view.standing.kind]))
    elif view.history.val_loss is not None and states.TONES[view.standing.kind] in ("warning", "error"):
        parts.append(theme.notice(str(states.result(view.standing)), states.TONES[view.standing.kind]))
    if view.history.val_loss is not None:
        # a model trained further is measured by its changes
        parts += [speaking.standing_line(view) * (not view.tuning), theme.stat_cards(cards(view))]
    seconds = seconds_of(view)
    if view.state == "recorded" and seconds:
        whence = "It was trained in a comparison." if view.paired else "It comes with the playground."
        parts.append(theme.quiet(f"{whence} Training took {theme.duration(seconds)}."))
    return "".join(parts)


def _ended(view: RunView) -> str:
    """How a run ended, in what state, and which weights are the model."""
    words = f"{sentence(view.message)} {states.result(view.standing)}"
    if view.used is not None:
        words += f" The model now has the weights of step {view.used:,}."
        if label := resume_label(view):
            words += f" {label} continues from the last step."
    return words


def bar(view: RunView) -> str:
    """The progress bar of a run in training."""
    done, planned = view.history.last_step, view.planned_steps or 0
    seconds = view.history.steps["seconds"]
    foreseen = view.latest.time_left if view.latest and seconds[-1] - seconds[0] > SURE_AFTER else None
    words = f"Step {done:,} of {planned:,}{left(foreseen)}"
    if view.done:
        return progress(view, view.done, "Measuring the old and the new text, before and after …")
    return progress(view, done / planned if planned else 0.0, words)
