"""The layers' minds: what each layer would already answer, and what each part adds to the chosen answer."""

from __future__ import annotations

import functools
from typing import Any

import gradio as gr
import torch

from ....figures.attention import describe_signed
from ....figures.lens import describe_lens, describe_norms, lens_map, norm_lines
from ....figures.parts import part_map
from ....inspection import Look
from ....inspection.attribution import Attribution, attribute
from ....inspection.lens import LogitLens, logit_lens
from ....words.lens import lens_caveat, part_name, stage_names
from ....words.numbers import signed
from ... import theme
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientDropdown, SteadyRadio
from ...widgets.clicks import cell_of, index_of
from .drawn import MOST_GUESSES, window, window_words
from .frame import Frame, Place

TITLE = "Layers' minds"
QUESTIONS = {"logit": "its score (logit)", "lead": "its lead over the runner-up"}
ANSWERS = 8
"""Candidates offered as the answer to follow."""

_plus = functools.partial(signed, digits=4, plus=True)


def build(frame: Frame) -> None:
    """The lens above; below it where the answer's score comes from, and how long the stream is."""
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
    with gr.Row(equal_height=False):
        with gr.Column(scale=3, min_width=320, elem_classes="card"):
            question = SteadyRadio(
                [(title, name) for name, title in QUESTIONS.items()],
                value="logit",
                label="Taken apart (direct logit attribution)",
                elem_classes="pills",
                elem_id="minds-question",
            )
            parts_chart = Chart(height=240, save_name="attribution", clickable=True, elem_id="minds-parts")
            receipt = gr.HTML(padding=False, elem_id="minds-receipt")
        with gr.Column(scale=2, min_width=300, elem_classes="card"):
            gr.HTML(theme.heading("How much is written", "Length of the residual stream."), padding=False)
            norms_chart = Chart(height=220, save_name="residual-norms")

    def draw(look: Look, place: Place, wanted: str, asked: str) -> dict[Any, Any]:
        token, choices = followed(look, place, wanted)
        lens = lens_of(look, place.query, token)
        part = window(look.length, place.query, MOST_GUESSES)
        found = attribution_of(look, place, token, asked)
        figure, words = lens_picture(look, lens, place, part)
        stages = stage_names(look.config.n_layers)
        table = found.by_layer(look.config.n_layers, look.config.n_heads).numpy()
        rows = [f"layer {layer}" for layer in range(look.config.n_layers)]
        columns = [*(f"head {head}" for head in range(look.config.n_heads)), "feed-forward"]
        name = "share of the score" if found.against is None else "share of the lead"
        return {
            answer: gr.Dropdown(choices=choices, value=wanted if wanted in dict(map(reversed, choices)) else ""),
            lens_chart: show(figure, words + window_words(look, part)),
            caveat: theme.notice(lens_caveat(look.config)),
            parts_chart: show(
                part_map(table, columns, "adds %{customdata:+.4f}", mark=(place.layer, place.head)),
                f"{describe_signed(table, rows, columns, name)} All other parts stand in the table.",
            ),
            receipt: receipt_table(look, found),
            norms_chart: show(
                norm_lines(lens.norms.numpy(), stages, look.labels(), place.query),
                describe_norms(lens.norms.numpy(), stages, place.query),
            ),
        }

    frame.follow(draw, [answer, lens_chart, caveat, parts_chart, receipt, norms_chart], extra=[answer, question])
    frame.redraws(answer.input, of=answer)
    frame.redraws(question.input, of=question)

    def to_token(look: Look, place: Place, event: gr.EventData) -> Place:
        part = window(look.length, place.query, MOST_GUESSES)
        return place.at(query=part.start + index_of(event, part.stop - part.start))

    def to_head(look: Look, place: Place, event: gr.EventData) -> Place:
        n_heads = look.config.n_heads
        layer, head = cell_of(event, rows=look.config.n_layers, columns=n_heads + 1)
        return place.at(layer=layer, head=head if head < n_heads else place.head)

    frame.moves(lens_chart.select, to_token)
    frame.moves(parts_chart.select, to_head)


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
    return logit_lens(look.model, look.trace, followed=answers, candidates=1)


def lens_picture(look: Look, lens: LogitLens, place: Place, part: slice) -> tuple[dict[str, Any], str]:
    """The table of guesses and its sentence."""
    guesses = [[look.token_label(int(token)) for token in row[part, 0]] for row in lens.candidates]
    answers = [look.token_label(int(token)) for token in lens.followed[part]]
    probabilities, ranks = lens.followed_probabilities[:, part].numpy(), lens.followed_ranks[:, part].numpy()
    column, stages = place.query - part.start, stage_names(look.config.n_layers)
    figure = lens_map(
        probabilities, ranks, guesses, stages, look.labels()[part], answers,
        chosen=(len(stages) - 1, column),
    )  # fmt: skip
    words = describe_lens(probabilities, ranks, stages, look.tokens[place.query], answers[column], column)
    return figure, words


def attribution_of(look: Look, place: Place, token: int, asked: str) -> Attribution:
    """The chosen token's score taken apart, or its lead over the best of the others."""
    against = None
    if asked == "lead":
        logits = look.trace["logits"][0, place.query].float().clone()
        logits[token] = -torch.inf
        against = int(logits.argmax()) if look.config.vocab_size > 1 else None
    return attribute(look.model, look.trace, place.query, token, against)


def receipt_table(look: Look, found: Attribution) -> str:
    """Every kind of part with its sum, down to the model's own number; the heads and layers one by one in a list."""
    sums: dict[str, float] = {}
    for part in found.parts:
        sums[part.kind] = sums.get(part.kind, 0.0) + part.value
    names = {"head": "all heads", "feed-forward": "all feed-forward layers", "position": "its position"}
    rows = [(names.get(kind, kind), theme.Cell(_plus(value), value)) for kind, value in sums.items()]
    shown = f"“{look.token_label(found.token)}”"
    against = "" if found.against is None else f" minus that of “{look.token_label(found.against)}”"
    strongest = sorted(found.parts, key=lambda part: -abs(part.value))[:6]
    most = ", ".join(f"{part_name(part)} {_plus(part.value, digits=2)}" for part in strongest)
    rows += [
        ("sum of all parts", theme.Cell(_plus(found.total), found.total)),
        (f"the model's own score of {shown}{against}", theme.Cell(_plus(found.logit), found.logit)),
        ("difference (rounding)", theme.Cell(f"{found.difference:.1e}".replace("-", "−"), found.difference)),
    ]
    note = (
        "Every norm on the way is held at the scale it had in this pass, which makes the way from each part to the "
        "score linear."
    )
    return theme.table(("part", "adds"), rows, save="attribution-sums") + theme.quiet(f"Strongest: {most}. {note}")
