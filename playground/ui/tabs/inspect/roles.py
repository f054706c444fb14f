"""What heads do: a map of scores over all layers and heads, on the prompt or on a repeated random sequence."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import gradio as gr
import numpy as np

from ....figures.heads import describe_head_map, head_map
from ....inspection import Look, look
from ....inspection.heads import HABITS, TITLES, HeadScores, head_scores, repeated_sequence, role, sleeps, wake
from ... import theme
from ...chart import Chart, show
from ...page import QUIETLY
from ...prompts import suggestions
from ...widgets.clicks import cell_of
from ...widgets.turns import Question
from .frame import EXAMPLE, Frame, Place

TITLE = "What heads do"
SEQUENCES = {"prompt": "This prompt", "repeated": "A random sequence, twice"}
MAPS = {**{name: f"look at {title}" for name, title in TITLES.items()}, "evenness": "spread their weight evenly"}


def build(frame: Frame) -> None:
    """The map, the table behind it, and the way to wake a sleeping head."""
    with gr.Row(equal_height=False):
        with gr.Column(scale=3, min_width=320, elem_classes="card"):
            sequence = gr.Radio(
                [(title, name) for name, title in SEQUENCES.items()],
                value="prompt",
                label="Measured on",
                elem_classes="pills",
                elem_id="inspect-sequence",
            )
            habit = gr.Radio(
                [(title, name) for name, title in MAPS.items()],
                value="previous",
                label="Heads that …",
                elem_classes="pills",
                elem_id="inspect-habit",
            )
            sequence.preprocess = lambda payload: payload if payload in SEQUENCES else "prompt"
            habit.preprocess = lambda payload: payload if payload in MAPS else "previous"
            chart = Chart(height=260, save_name="head-scores", clickable=True, elem_id="inspect-roles-chart")
        with gr.Column(scale=2, min_width=300, elem_classes="card"):
            card = gr.HTML(padding=False, elem_id="inspect-role")
            waker = gr.Button("Find a prompt that wakes it", visible=False, size="md", elem_id="inspect-wake")
            proposal = gr.HTML(padding=False, elem_id="inspect-proposal")
            taker = gr.Button("Use this prompt", visible=False, variant="primary", size="md", elem_id="inspect-take")
            found = gr.Textbox(visible=False)
    with gr.Accordion("All scores as a table", open=False):
        table = gr.HTML(padding=False)

    def draw(seen: Look, place: Place, which: str, name: str) -> dict[Any, Any]:
        measured = seen if which == "prompt" else repeated(seen)
        scores = head_scores(measured)
        values = getattr(scores, name)
        asleep = which == "prompt" and sleeps(scores.of(*place.owner))
        return {
            chart: show(head_map(values, MAPS[name], chosen=place.owner), describe_head_map(values, MAPS[name])),
            card: role_card(scores, place),
            table: score_table(scores),
            waker: gr.Button(visible=asleep),
            taker: gr.Button(visible=False),
            proposal: "",
        }

    frame.follow(draw, [chart, card, table, waker, taker, proposal], extra=[sequence, habit])
    frame.redraws(sequence.input, of=sequence)
    frame.redraws(habit.input, of=habit)

    def to_head(seen: Look, place: Place, event: gr.EventData) -> Place:
        layer, head = cell_of(event, rows=seen.config.n_layers, columns=seen.config.n_heads)
        return place.at(layer=layer, head=head)

    frame.moves(chart.select, to_head)

    def find(seen: Look, place: Place, question: Question) -> Callable[[], dict]:
        values = question.values
        if values[frame.subject] == EXAMPLE:
            raise ValueError("The worked example knows only its own three tokens")
        prompts = candidates(frame, seen, values[frame.page.model], values[frame.page.visitor])
        return lambda: {} if question.stale else proposed(seen, place, prompts)

    def proposed(seen: Look, place: Place, prompts: list[str]) -> dict:
        before = float(head_scores(seen).telling()[place.owner])
        better = wake(seen.checkpoint, *place.owner, prompts, before)
        if better is None:
            words = "None of the prompts tried gives this head more to do: it may rest wherever you look."
            return {proposal: theme.notice(words), taker: gr.Button(visible=False)}
        words = f"On “{better.prompt.strip()}” it {better.role}."
        return {proposal: theme.notice(words, "good"), taker: gr.Button(visible=True), found: better.prompt}

    frame.presses(waker.click, find, [], [proposal, taker, found])
    taker.click(lambda text: text, found, frame.prompt, **QUIETLY)


def repeated(seen: Look) -> Look:
    """The same model's look at a random sequence that comes twice."""
    return look(seen.checkpoint, repeated_sequence(seen.config, seen.checkpoint.tokenizer.vocab_size))


def candidates(frame: Frame, seen: Look, model_id: str | None, visitor: str | None) -> list[str]:
    """Prompts to try: what suits the model, and a random sequence twice."""
    known = suggestions(frame.page, model_id, visitor)
    samples = [str(s.get("text", ""))[:120] for s in seen.checkpoint.history.samples[-3:]]
    tokenizer = seen.checkpoint.tokenizer
    twice = [tokenizer.decode(repeated_sequence(seen.config, tokenizer.vocab_size, seed=seed)) for seed in range(3)]
    return [*known, *samples, *(f"{text} {text}" for text in known), *twice]


def role_card(scores: HeadScores, place: Place) -> str:
    """The chosen head's role and numbers."""
    own = scores.of(*place.owner)
    rows = "".join(
        f"<tr><td>weight on {html.escape(TITLES[name])}</td><td>{_number(own[name])}</td></tr>" for name in HABITS
    )
    rows += f"<tr><td>entropy of a row, in bits</td><td>{_number(own['entropy'])}</td></tr>"
    rows += f"<tr><td>evenness: entropy as a share of the most possible</td><td>{_number(own['evenness'])}</td></tr>"
    return (
        f"{theme.heading(f'Layer {place.layer}, head {place.head}', f'It {role(own)}.')}"
        f'<table class="plain-table"><tbody>{rows}</tbody></table>'
    )


def score_table(scores: HeadScores) -> str:
    """Every head's scores and role, the most telling first."""
    names = (*HABITS, "entropy", "evenness")
    head = "".join(f"<th>{html.escape(TITLES.get(name, name))}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{layer}</td><td>{number}</td>"
        + "".join(f"<td>{_number(scores.of(layer, number)[name])}</td>" for name in names)
        + f"<td>{html.escape(role(scores.of(layer, number)))}</td></tr>"
        for layer, number in scores.ranking()
    )
    return theme.saved_table(
        f'<table class="plain-table"><thead><tr><th>layer</th><th>head</th>{head}<th>role</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>",
        "head-scores",
    )


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"
