"""The layers' minds: what each layer would already answer, and how long its stream is."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....figures.lens import describe_lens, describe_norms, lens_map, norm_lines
from ....inspection import Look
from ....inspection.lens import LogitLens, logit_lens
from ....words.lens import lens_caveat, stage_names
from ... import theme
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientDropdown
from ...widgets.clicks import index_of
from .drawn import MOST_GUESSES, window, window_words
from .frame import Frame, Place

TITLE = "Layers' minds"
ANSWERS = 8
"""Candidates offered as the answer to follow."""


def build(frame: Frame) -> None:
    """The lens above; below it how long the stream is."""
    with gr.Column(elem_classes="card"):
        gr.HTML(
            theme.heading(
                "What every layer would already answer (logit lens)",
                "Each row reads the residual stream after one layer as if the model ended there. The word in a cell is "
                "that layer's best guess for the next token; the colour is how probable it finds the final answer. "
                "Click a column to follow that token.",
            ),
            padding=False,
        )
        with gr.Row():
            answer = LenientDropdown(
                [("the model's final choice", "")],
                value="",
                label="Answer to follow",
                info="After the chosen token; elsewhere each column follows its own.",
                filterable=False,
                elem_id="minds-answer",
            )
        lens_chart = Chart(height=280, save_name="logit-lens", clickable=True, elem_id="minds-lens")
        caveat = gr.HTML(padding=False)
    with gr.Column(elem_classes="card"):
        gr.HTML(theme.heading("How much is written", "Length of the residual stream."), padding=False)
        norms_chart = Chart(height=220, save_name="residual-norms")

    def draw(look: Look, place: Place, wanted: str) -> dict[Any, Any]:
        token, choices = followed(look, place, wanted)
        lens = lens_of(look, place.query, token)
        part = window(look.length, place.query, MOST_GUESSES)
        figure, words = lens_picture(look, lens, place, part)
        stages = stage_names(look.config.n_layers)
        return {
            answer: gr.Dropdown(choices=choices, value=wanted if wanted in dict(map(reversed, choices)) else ""),
            lens_chart: show(figure, words + window_words(look, part)),
            caveat: theme.notice(lens_caveat(look.config)),
            norms_chart: show(
                norm_lines(lens.norms.numpy(), stages, look.labels(), place.query),
                describe_norms(lens.norms.numpy(), stages, place.query),
            ),
        }

    frame.follow(draw, [answer, lens_chart, caveat, norms_chart], extra=[answer])
    frame.redraws(answer.input, of=answer)

    def to_token(look: Look, place: Place, event: gr.EventData) -> Place:
        part = window(look.length, place.query, MOST_GUESSES)
        return place.at(query=part.start + index_of(event, part.stop - part.start))

    frame.moves(lens_chart.select, to_token)


def followed(look: Look, place: Place, wanted: str) -> tuple[int, list[tuple[str, str]]]:
    """The token to follow after the chosen one, and the choices: the final choice, the text's own, the likeliest."""
    logits = look.trace["logits"][0, place.query].float()
    best = logits.topk(min(ANSWERS, look.config.vocab_size)).indices.tolist()
    real = look.ids[place.query + 1] if place.query + 1 < look.length else None
    choices = [(f"the model's final choice: {look.token_label(best[0])}", "")]
    if real is not None:
        choices.append((f"what the prompt says: {look.token_label(real)}", str(real)))
    choices += [(look.token_label(token), str(token)) for token in best[1:] if token != real]
    known = {value for _, value in choices if value}
    return (int(wanted) if str(wanted) in known else best[0]), choices


def lens_of(look: Look, query: int, token: int) -> LogitLens:
    """The lens, following `token` after the query and every other column's own final choice."""
    answers = look.trace["logits"][0].float().argmax(dim=-1).clone()
    answers[query] = token
    return logit_lens(look.model, look.trace, answers)


def lens_picture(look: Look, lens: LogitLens, place: Place, part: slice) -> tuple[dict[str, Any], str]:
    """The table of guesses and its sentence."""
    guesses = [[look.token_label(int(token)) for token in row[part]] for row in lens.best]
    answers = [look.token_label(int(token)) for token in lens.followed[part]]
    probabilities, ranks = lens.followed_probabilities[:, part].numpy(), lens.followed_ranks[:, part].numpy()
    column, stages = place.query - part.start, stage_names(look.config.n_layers)
    figure = lens_map(
        probabilities, ranks, guesses, stages, look.labels()[part], answers,
        chosen=(len(stages) - 1, column),
    )  # fmt: skip
    words = describe_lens(probabilities, ranks, stages, look.tokens[place.query], answers[column], column)
    return figure, words
