"""Unbalanced: a button that trains the same small mixture with the Switch loss, with none, and with the constant."""

from __future__ import annotations

import math
from typing import Any

import gradio as gr

from ....figures.breaking import describe_losses, describe_runs, evenness_lines, loss_lines
from ....model import ModelConfig
from ....service.balance import BalanceJob, BalanceRun, BalanceView
from ....service.limits import BALANCE_STEPS
from ...chart import Chart
from ...followers import Follower, in_line
from ...following import Following
from ...page import QUIETLY, Page
from ...quoted import quoted
from ...refusals import in_words, sentence
from ...theme import heading, notice
from .two_models import TwoModels


def build(two: TwoModels) -> None:
    """One choice, a button, two charts that grow; found again by whoever comes back."""
    Unbalanced(two.page).connect()


class Unbalanced(Following):
    """Holds the components; of a visitor it keeps nothing."""

    kind, seen_on = BalanceJob, "Dense vs MoE, “Break it”"

    def __init__(self, page: Page):
        super().__init__(page)
        gr.HTML(
            heading(
                "Train without balance",
                "Three equal small mixtures learn Dialects in turns: with the Switch loss, with its weight at 0, and "
                "with the constant. Watch whether the load stays even.",
            )
        )
        with gr.Row(equal_height=False):
            self.per_token = gr.Radio([1, 2], value=1, label="Experts per token", scale=1)
            self.steps = gr.Slider(20, BALANCE_STEPS, 160, step=20, label="Steps", scale=2)
            self.start = gr.Button("Train all three", variant="primary", scale=1, elem_id="unbalanced-start")
            self.halt = gr.Button("Stop", interactive=False, scale=0, min_width=90, elem_id="unbalanced-stop")
        self.said = gr.HTML(padding=False, elem_id="unbalanced-said")
        # charts take no room as long as they are empty; gradio loses one of two rows that are shown at the same moment
        with gr.Row(equal_height=False):
            with gr.Column(min_width=320):
                self.entropy = Chart(height=280, save_name="load-entropy", elem_id="unbalanced-entropy")
            with gr.Column(min_width=320):
                self.losses = Chart(height=280, save_name="losses-by-balance", elem_id="unbalanced-losses")

    def connect(self) -> None:
        """Bind the handlers."""
        visitor = self.page.visitor
        views = [self.said, self.entropy, self.losses, self.start, self.halt, self.timer]
        self.start.click(self.train, [visitor, self.per_token, self.steps], views, **QUIETLY)
        self.halt.click(self.stop, [visitor], views, **QUIETLY)
        self.looks([visitor], views)
        self.page.on_load(self.attach, [visitor], views)
        self.page.share("balance.steps", self.steps)

    def train(self, visitor: str | None, experts_per_token: Any, n_steps: Any, request: gr.Request) -> dict:
        """Press Train all three: begin, or stand in line."""
        with in_words():
            share = self.page.share_of(request)
            job = self.board.balance(self.page.known(visitor), experts_per_token, n_steps, share=share)
        return self.follow(job, request)

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def chosen(self, visitor: str | None) -> BalanceView | None:
        """The last of the visitor's runs that came to something."""
        jobs = [job for job in self.board.of(visitor, kind=BalanceJob) if job.has_result]
        return jobs[-1].view() if jobs else None

    def opening(self, jobs: list, request: gr.Request, visitor: str | None) -> BalanceView | None:
        """See `Following.opening`."""
        return jobs[-1].view() if jobs else None

    def status(self, view: BalanceView) -> str:
        """See `Following.status`."""
        return words_of(view)

    def draw(self, view: BalanceView, visitor: str | None, follower: Follower, *, whole: bool = False) -> dict:
        """See `Following.draw`."""
        state, runs, (key, above) = view.state, view.runs, self.above(visitor, view)
        parts = {
            self.said: ((state, view.place, view.wait, key), lambda: above + words_of(view)),
            self.start: (state, lambda: gr.Button(interactive=not view.active)),
            self.halt: (state, lambda: gr.Button(interactive=view.active and state != "stopping")),
            self.timer: (pause := self.pause(view), lambda: gr.Timer(pause)),
        }
        out = follower.only_new(parts, view, whole=whole)
        if any(run.losses for run in runs.values()):
            bits = {name: (r.steps, r.entropy) for name, r in runs.items()}
            nats = {name: (r.loss_steps, r.losses) for name, r in runs.items()}
            even = evenness_lines(bits, most_entropy(view.config), view.planned_steps)
            out[self.entropy] = follower.feed.update(even, summary(runs, view.config))
            lines = loss_lines(nats, view.planned_steps)
            out[self.losses] = follower.second.update(lines, losses_so_far(runs))
        return quoted(out, model="three mixtures, with and without balance")


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
    step = min(run.steps[-1] for run in runs.values())  # one may have ended before the others
    found = {name: run.steps.index(step) for name, run in runs.items()}
    return describe_runs(
        {name: runs[name].entropy[i] for name, i in found.items()},
        most_entropy(config),
        {name: runs[name].dead[i] for name, i in found.items()},
        {name: run.losses[run.loss_steps.index(step)] for name, run in runs.items()},
        step,
    )


def losses_so_far(runs: dict[str, BalanceRun]) -> str:
    """How the three compare once each was evaluated, and how much of it is rounding."""
    step = max(set.intersection(*(set(run.loss_steps) for run in runs.values())), default=None)
    if step is None:
        return ""
    # a stop ends each at a step of its own
    known = {name: run.losses[run.loss_steps.index(step)] for name, run in runs.items()}
    _, none, constant = (round(loss, 4) for loss in known.values())  # as they are written
    apart = abs(constant - none)
    alike = f"differ by {apart:.4f}, which is rounding that grew" if apart else "are alike to four decimals"
    return (
        f"{describe_losses(known, apart, step)} Without a loss and with the constant, routers are asked the same: "
        f"those two {alike}."
    )
