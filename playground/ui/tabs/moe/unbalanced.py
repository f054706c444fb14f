"""Unbalanced: a button that trains the same small mixture with the Switch loss, with none, and with the constant."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import gradio as gr

from ....data import Corpus, corpus_from_language
from ....model import PRESETS, ModelConfig
from ....training import TrainConfig
from ...chart import Chart, Feed
from ...figures.breaking import describe_losses, describe_runs, evenness_lines, loss_lines
from ...page import in_words
from ...theme import heading
from .balance_runs import BalanceRun, balance_runs
from .frame import Frame

MOST_SECONDS = 90.0
MOST_STEPS = 400
MODEL = PRESETS["tiny"].config.replace(context_length=64, n_experts=8, d_expert=64)


def build(frame: Frame) -> None:
    """One choice, a button, two charts that grow."""
    page = frame.page
    gr.HTML(
        heading(
            "Train without balance",
            "Three equal small mixtures learn Dialects in turns: with the Switch loss, with its weight at 0, and with "
            "the constant. Watch whether the load stays even.",
        )
    )
    with gr.Row(equal_height=False):
        per_token = gr.Radio([1, 2], value=1, label="Experts per token", scale=1)
        steps = gr.Slider(20, MOST_STEPS, 160, step=20, label="Steps", scale=2)
        start = gr.Button("Train all three", variant="primary", scale=1, elem_id="unbalanced-start")
        stop = gr.Button("Stop", interactive=False, scale=0, min_width=90, elem_id="unbalanced-stop")
    # charts take no room as long as they are empty; gradio loses one of two rows that are shown at the same moment
    with gr.Row(equal_height=False):
        with gr.Column(min_width=320):
            entropy = Chart(height=280, save_name="load-entropy", elem_id="unbalanced-entropy")
        with gr.Column(min_width=320):
            losses = Chart(height=280, save_name="losses-by-balance", elem_id="unbalanced-losses")
    stopping: dict[str, threading.Event] = {}

    def run(visitor: str | None, experts_per_token: Any, n_steps: Any) -> Iterator[dict]:
        with in_words():
            visitor = page.known(visitor)
            corpus, config, training = planned(experts_per_token, n_steps)
            page.limits.check_training(config, training)
            ended = stopping[visitor] = threading.Event()
            feeds = Feed(), Feed()
            yield {start: gr.Button(interactive=False), stop: gr.Button(interactive=True)}
            try:
                for runs in balance_runs(config, corpus, training, ended.is_set):
                    yield drawn(runs, config, training, feeds)
            finally:
                ended.set()
                stopping.pop(visitor, None)
            yield {start: gr.Button(interactive=True), stop: gr.Button(interactive=False)}

    def drawn(runs: dict[str, BalanceRun], config: ModelConfig, training: TrainConfig, feeds: tuple) -> dict:
        most, words = most_entropy(config), summary(runs, config)
        bits = {name: (r.steps, r.entropy) for name, r in runs.items()}
        nats = {name: (r.loss_steps, r.losses) for name, r in runs.items()}
        return {
            entropy: feeds[0].update(evenness_lines(bits, most, training.steps), words),
            losses: feeds[1].update(loss_lines(nats, training.steps), losses_so_far(runs)),
        }

    def halt(visitor: str | None) -> None:
        if visitor in stopping:
            stopping[visitor].set()

    start.click(
        run, [page.visitor, per_token, steps], [entropy, losses, start, stop], concurrency_limit=1,
        show_progress="minimal", api_visibility="private",
    )  # fmt: skip
    stop.click(halt, page.visitor, None, queue=False, api_visibility="private")


def planned(experts_per_token: Any, n_steps: Any) -> tuple[Corpus, ModelConfig, TrainConfig]:
    """What the three runs share. Raises ValueError for what a page could not have sent."""
    for name, value in (("experts per token", experts_per_token), ("steps", n_steps)):
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value != int(value):
            raise ValueError(f"{name} must be a whole number, not {value!r}")
    if not 1 <= n_steps <= MOST_STEPS:
        raise ValueError(f"Between 1 and {MOST_STEPS} steps can be trained here, not {n_steps}")
    corpus = _corpus()
    config = MODEL.replace(vocab_size=corpus.vocab_size, experts_per_token=int(experts_per_token))
    every = max(int(n_steps) // 16, 5)
    # what the constant adds is rounding: bf16 would make it visible at once, and Muon, which makes the small directions
    # of a gradient as long as the others, within a hundred steps
    training = TrainConfig(
        steps=int(n_steps), batch_size=16, eval_every=every, eval_windows=16, max_seconds=MOST_SECONDS, seed=1,
        optimizer="adamw", precision="fp32",
    )  # fmt: skip
    return corpus, config, training


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
    """How the three compare once each was evaluated, and how much of it is rounding."""
    known = {name: run.losses[-1] for name, run in runs.items() if run.losses}
    if len(known) < len(runs):
        return ""
    _, none, constant = known.values()
    return (
        f"{describe_losses(known)} The last two ask the same of the routers: they differ by "
        f"{abs(constant - none):.4f}, which is rounding that grew; a difference of that size between two runs means "
        "nothing."
    )


@lru_cache(maxsize=1)
def _corpus() -> Corpus:
    return corpus_from_language("dialects", n_characters=400_000, n_validation=20_000, unit="word")
