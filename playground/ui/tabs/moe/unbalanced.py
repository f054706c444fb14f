"""Unbalanced: a button that trains the same small mixture with the Switch loss, with none, and with the constant."""

from __future__ import annotations

import math
from typing import Any

import gradio as gr

from ....model import ModelConfig
from ....service.balance import BalanceJob, BalanceRun, BalanceView
from ....service.limits import BALANCE_STEPS
from ...chart import Chart
from ...figures.breaking import describe_losses, describe_runs, evenness_lines, loss_lines
from ...followers import TICK, Followers, in_line, tick
from ...page import QUIETLY, in_words, sentence
from ...theme import heading, notice
from .frame import Frame


def build(frame: Frame) -> None:
    """One choice, a button, two charts that grow; found again by whoever comes back."""
    page, followers = frame.page, (Followers(), Followers())
    gr.HTML(
        heading(
            "Train without balance",
            "Three equal small mixtures learn Dialects in turns: with the Switch loss, with its weight at 0, and with "
            "the constant. Watch whether the load stays even.",
        )
    )
    with gr.Row(equal_height=False):
        per_token = gr.Radio([1, 2], value=1, label="Experts per token", scale=1)
        steps = gr.Slider(20, BALANCE_STEPS, 160, step=20, label="Steps", scale=2)
        start = gr.Button("Train all three", variant="primary", scale=1, elem_id="unbalanced-start")
        stop = gr.Button("Stop", interactive=False, scale=0, min_width=90, elem_id="unbalanced-stop")
    said = gr.HTML(padding=False, elem_id="unbalanced-said")
    # charts take no room as long as they are empty; gradio loses one of two rows that are shown at the same moment
    with gr.Row(equal_height=False):
        with gr.Column(min_width=320):
            entropy = Chart(height=280, save_name="load-entropy", elem_id="unbalanced-entropy")
        with gr.Column(min_width=320):
            losses = Chart(height=280, save_name="losses-by-balance", elem_id="unbalanced-losses")
    timer = gr.Timer(TICK, active=False)
    views = [said, entropy, losses, start, stop, timer]

    def run(visitor: str | None, experts_per_token: Any, n_steps: Any, request: gr.Request) -> dict:
        with in_words():
            job = page.board.balance(page.known(visitor), experts_per_token, n_steps)
        return follow(job, request)

    def halt(visitor: str | None, request: gr.Request) -> dict:
        job = page.board.stop(visitor, kind=BalanceJob)
        return drawn(job.view(), request) if job else gr.skip()

    def look(visitor: str | None, request: gr.Request) -> dict:
        job = latest(visitor)
        if job is None:
            return {timer: gr.Timer(active=False)}
        settled = job.settled
        out = drawn(job.view(), request, whole=settled)
        return out | {timer: gr.Timer(active=False)} if settled else out

    def attach(visitor: str | None, request: gr.Request) -> dict:
        job = latest(visitor)
        return gr.skip() if job is None else follow(job, request)

    def latest(visitor: str | None) -> BalanceJob | None:
        return next(reversed(page.board.of(visitor, kind=BalanceJob)), None)

    def follow(job: BalanceJob, request: gr.Request) -> dict:
        for each in followers:
            each.fresh(request)
        view = job.view()
        return drawn(view, request, whole=True) | {timer: gr.Timer(tick(view.time_left), active=True)}

    def drawn(view: BalanceView, request: gr.Request, *, whole: bool = False) -> dict:
        first, second = (each.of(request) for each in followers)
        if not whole and (first.run_id, first.version) == (view.id, view.version):
            return gr.skip()
        state, runs, waits = view.state, view.runs, view.state == "waiting"
        bits = {name: (r.steps, r.entropy) for name, r in runs.items()}
        nats = {name: (r.loss_steps, r.losses) for name, r in runs.items()}
        parts = {
            said: ((state, view.place, view.wait), lambda: words_of(view)),
            start: (state, lambda: gr.Button(interactive=not view.active)),
            stop: (state, lambda: gr.Button(interactive=view.active and state != "stopping")),
            timer: (pause := tick(view.time_left, waits=waits), lambda: gr.Timer(pause)),
        }
        out = first.only_new(parts, view, whole=whole)
        if any(run.losses for run in runs.values()):
            most = most_entropy(view.config)
            return out | {
                entropy: first.feed.update(evenness_lines(bits, most, view.planned_steps), summary(runs, view.config)),
                losses: second.feed.update(loss_lines(nats, view.planned_steps), losses_so_far(runs)),
            }
        return out

    start.click(run, [page.visitor, per_token, steps], views, **QUIETLY)
    stop.click(halt, page.visitor, views, **QUIETLY)
    timer.tick(look, page.visitor, views, **QUIETLY)
    page.on_load(attach, [page.visitor], views)


def words_of(view: BalanceView) -> str:
    """What is to be said above the curves: where in the line it stands, or what went wrong."""
    if view.state == "waiting":
        return notice(in_line(view))
    if view.state == "failed":
        return notice(sentence(view.message), "error")
    return notice(sentence(view.message)) if view.message else ""


def most_entropy(config: ModelConfig) -> float:
    """Bits of a perfectly even load."""
    return math.log2(config.n_experts)


def summary(runs: dict[str, BalanceRun], config: ModelConfig) -> str:
    """Where the three runs stand; a sentence of patience before all have been measured."""
    if any(not run.entropy for run in runs.values()):
        return "The first steps are being made …"
    return describe_runs(
        {name: run.entropy[-1] for name, run in runs.items()},
        most_entropy(config),
        {name: run.dead for name, run in runs.items()},
        {name: run.losses[-1] for name, run in runs.items()},
        min(run.steps[-1] for run in runs.values()),
    )


def losses_so_far(runs: dict[str, BalanceRun]) -> str:
    """How the three compare once each was evaluated."""
    known = {name: run.losses[-1] for name, run in runs.items() if run.losses}
    return describe_losses(known) if len(known) == len(runs) else ""
