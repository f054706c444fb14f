"""Experts: what they learned, measured against the true source of every token, and by the tokens they take most."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr
import numpy as np

from ....data import visible
from ....figures.specialisation import (
    describe_information,
    describe_sources,
    information_bars,
    source_map,
)
from ....inspection.favourites import favourites
from ....inspection.routing import RoutedText, expert_layers, routing_of
from ....storage import Checkpoint
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientRadio
from ...page import QUIETLY
from ...quoted import quoting
from ...refusals import in_words
from ...theme import Cell, heading, notice, table
from .expert_text import expert_badge
from .measured import Found, found_in, has_sources
from .texts import text_for
from .two_models import TwoModels

TITLE = "What did the experts learn?"

WHY = """
On *Dialects* four speakers take turns and nothing in the text names them, but here every token's true speaker is
known. **Mutual information** says how many bits knowing a token's expert tells about who speaks: 0 is nothing, 2 bits
would settle it. That alone proves little: the router reads what attention has gathered, and any fixed function of that
tells some of it. So each number stands beside what **routers that were taught nothing** tell: thirty random ones on the
same stream, the same routers before training (eight random starts), experts drawn for every place of the text, and the
same experts held against the speakers of other sentences. Routers have learned something only if they beat all four.
"""


def build(two: TwoModels) -> None:
    """Information per layer, experts by source, then each expert's favourite tokens."""
    page = two.page
    gr.Markdown(WHY)
    note = gr.HTML(elem_id="experts-note")
    with gr.Column() as known:
        bars = Chart(height=320, save_name="bits-per-layer", elem_id="experts-bits")
    layer = LenientRadio([("0", 0)], value=0, label="Layer", elem_id="experts-layer")
    with gr.Column() as by_source:
        gr.HTML(
            heading(
                "Experts by true source",
                "Counts of first choices; × compares them with the speaker’s share of the text.",
            )
        )
        sources = Chart(height=320, save_name="experts-by-source", elem_id="experts-sources")
    gr.HTML(
        heading(
            "Each expert’s favourite tokens",
            "Lift ×3: the expert takes this token three times as often as it takes tokens in general. Listed is only "
            "what luck does not explain.",
        )
    )
    pasted = gr.Textbox(
        "", label="Text", lines=2, max_lines=8, placeholder="Empty: fresh text of the model's language, if it has one.",
        info="Paste any text to see which of its tokens each expert takes.", elem_id="experts-text",
    )  # fmt: skip
    table = gr.HTML(elem_id="experts-favourites")

    def information(visitor: str | None, model_id: str | None) -> dict:
        """Everything about sources; hidden, with a sentence, where there are none."""
        hidden = {known: gr.Column(visible=False), by_source: gr.Column(visible=False)}
        try:
            checkpoint = page.registry.get(model_id, visitor)
            layers = expert_layers(checkpoint.config)
        except ValueError as problem:
            return {note: notice(f"{problem}.", "warning"), table: "", **hidden}
        found, said = None, ""
        try:
            found = found_in(checkpoint)
        except ValueError as problem:
            said = notice(f"{problem}.")
        telling = layers[-1]
        if found:
            telling = max(zip(found.judgements, found.layers), key=lambda pair: pair[0]["beyond"].bits)[1]
        shared = {
            layer: gr.Radio([(str(n), n) for n in layers], value=telling),
            pasted: "",
            table: _favourites(checkpoint, "", telling),
            note: said,
        }
        if found is None:
            return {**shared, **hidden}
        return {
            **shared,
            known: gr.Column(visible=True),
            by_source: gr.Column(visible=True),
            bars: _bars(found),
            sources: _sources(found, telling),
        }

    def another_layer(visitor: str | None, model_id: str | None, words: str, number: Any) -> dict:
        with in_words():
            checkpoint = page.registry.get(model_id, visitor)
            answer = {table: _favourites(checkpoint, words, number, strict=True)}
            if has_sources(checkpoint):
                answer[sources] = _sources(found_in(checkpoint), number)
            return answer

    def _favourites(checkpoint: Checkpoint, words: str, number: Any, *, strict: bool = False) -> str:
        try:
            windows, what = text_for(page, checkpoint, words)
        except ValueError as problem:
            if strict:
                raise
            return notice(f"{problem}.")
        ids = windows[:, :-1]
        return favourites_table(checkpoint, routing_of(checkpoint.model, ids), ids.flatten().numpy(), number, what)

    inputs = [page.visitor, two.moe]
    drawn = [note, known, bars, layer, by_source, sources, pasted, table]
    another_layer = quoting(another_layer, page.registry, layer="number")
    two.on_change(information, inputs, drawn)
    for event in (layer.input, pasted.submit, pasted.blur):
        event(another_layer, [*inputs, pasted, layer], [table, sources], **QUIETLY)


def favourites_table(checkpoint: Checkpoint, routing: RoutedText, tokens: np.ndarray, layer: Any, what: str) -> str:
    """Each expert's share of visits and its favourite tokens in one layer, as an HTML table."""
    layer = layer if layer in routing.layers else routing.layers[-1]
    i, rows = routing.layers.index(layer), []
    experts = routing.experts[i].flatten(0, 1).numpy()
    found, looked = favourites(experts, tokens, routing.n_experts, most=8)
    for expert, liked in enumerate(found):
        words = "".join(
            f'<span class="favourite" title="{f.taken:,} of its {f.count:,} occurrences visit this expert"><code>'
            f"{html.escape(visible(checkpoint.tokenizer.token_text(f.token)))}</code> "
            f"<small>×{f.lift:.2f}</small></span>"
            for f in liked
        )
        share, heard = routing.load[i, expert], routing.weight[i, expert]
        nothing = "nothing more often than luck explains" if share else "nothing: this expert is not visited"
        rows.append(
            (
                Cell(str(expert), html=expert_badge(expert)),
                Cell(f"{100 * share:.1f} %", share),
                Cell(f"{100 * heard:.1f} %", heard),
                Cell(html=words or nothing, kind="words"),
            )
        )
    takes = Cell("takes more often than luck explains: lift", kind="words")
    shown = table(("expert", "share of visits", "of weight", takes), rows, save="favourite-tokens")
    words = (
        f"Layer {layer}, {len(tokens):,} tokens of {html.escape(what)}; {looked:,} pairs of token and expert were "
        "looked at; what is listed holds for all of them together (95 %)."
    )
    return f"<p>{words}</p>{shown}"


def _bars(found: Found) -> Any:
    return show(
        information_bars(found.layers, found.judgements),
        describe_information(found.layers, found.judgements, found.token_bits),
    )


def _sources(found: Found, layer: Any) -> Any:
    i = found.layers.index(layer) if layer in found.layers else len(found.layers) - 1
    return show(source_map(found.tables[i], found.names), describe_sources(found.tables[i], found.names))
