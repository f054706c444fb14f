"""Writing: the prompt, the text as it streams under its writer's name, and the table behind every token of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from ....data import sentences
from ....engine import SamplingConfig, stream
from ....engine.request import default_slide
from ....service.limits import WRITERS
from ....service.verdicts import in_words as in_words_of
from ....service.verdicts import verdicts_on
from ....storage import Checkpoint
from ... import theme
from ...chart import Chart
from ...forms.fields import whole
from ...gradio_fixes.lenient import LenientDropdown
from ...links import copy_link, linked_prompt
from ...page import QUIETLY, UNSEEN, Page
from ...prompts import chip_text, chips, read_prompt, suggestions
from ...refusals import in_words, sentence
from ...theme import quiet
from ...widgets.clicks import cell_of, index_of
from ...writers import seconds_between_updates
from . import controls as sampling_controls
from .choice import branch, opened, rows_of
from .controls import Controls
from .presses import Press, Presses
from .tokens import BEGIN, CHOSEN, STOP, UNLESS_WRITTEN, WEIGHTS, TokenText, buttons, finished, growing
from .written import Written

CHARACTERS_PER_UPDATE = 1000
"""After so many characters a text is shown half as often as at its start, after twice as many a third, and so on."""
NO_MASK = (
    "This model learned without a mask: every token saw its own answer, so its loss looks wonderful and what it "
    "writes makes no sense."
)
_HOW_TO_READ = (
    "Strongly coloured tokens surprised the model, pale ones it expected. Click one to open the choice behind it."
)
_LANE = {"concurrency_limit": WRITERS, "concurrency_id": "generate", **UNSEEN}


@dataclass
class Desk:
    """The parts of this tab that its experiments share."""

    prompt: gr.Textbox
    controls: Controls


def build(page: Page) -> Desk:
    """Prompt and controls on the left, the text on the right, the opened choice below it."""
    presses = Presses()
    known = suggestions(page, page.registry.default, None)
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=300):
            prompt = gr.Textbox(
                known[0],
                label="Prompt",
                lines=3,
                max_lines=8,
                info="The model goes on from here.",
                elem_id="generate-prompt",
            )
            ideas = gr.Dataset(
                components=[prompt],
                **chips(known),
                label="Beginnings this model knows",
                show_label=True,
                type="values",
            )
            mask = gr.HTML(_no_mask(page, page.registry.default, None), padding=False, elem_id="generate-mask")
            with gr.Row():
                start = gr.Button("Generate", variant="primary", elem_id="generate-start", min_width=120)
                stop = gr.Button("Stop", elem_id="generate-stop", interactive=False, min_width=90)
            controls = sampling_controls.build(page.limits)
        with gr.Column(scale=3, min_width=320):
            text = TokenText(elem_id="generate-text")
            status = gr.HTML(
                quiet("Press Generate: the text appears here as it is written."),
                padding=False,
                elem_id="generate-status",
            )
            copy_link(page, "generate")
            with gr.Column(visible=False, elem_classes="card") as card:
                heading = gr.Markdown(elem_id="choice-heading")
                with gr.Row():
                    sample_number = gr.Number(1, label="Sample", precision=0, minimum=1, visible=False)
                    token_number = gr.Number(1, label="Token", precision=0, minimum=1, info="Or click it above.")
                    instead = LenientDropdown([], label="Go on with another token", info="Or click its bar.", scale=2)
                    rewrite = gr.Button("Continue from here", scale=1, min_width=120, elem_id="rewrite")
                steps = Chart(height=380, save_name="choice", clickable=True, elem_id="choice-chart")
                table = gr.Dataframe(
                    headers=[
                        "token",
                        "score",
                        "probability",
                        "penalty, ÷ T",
                        "after it",
                        "cut by",
                        "drawn with",
                    ],
                    interactive=False,
                    label="scores → temperature → cut-offs → probabilities → choice",
                    elem_id="choice-table",
                )
    # what was written, kept by the visitor's own browser, so that a reload still has it
    record = gr.BrowserState(None, storage_key="playground-written", secret="playground-written")
    press_name = gr.Textbox("", visible=False)  # the last input of its events: the browser fills it in
    page.share("generate.prompt", prompt)
    for name, component in controls.components.items():
        page.share(f"generate.{name}", component)
    page.share("generate.same_again", controls.again)
    page.share("generate.rules", controls.rules)

    # ---- writing -----------------------------------------------------------------------------------------------------

    def write(values: dict) -> Iterator[dict]:
        def begin(sampling: SamplingConfig) -> tuple[Checkpoint, Written, list[str]]:
            model_id = values[page.model]
            checkpoint = page.registry.get(model_id, values[page.visitor])
            ids, notes = read_prompt(page, checkpoint, values[prompt])
            n = controls.amount(values)[1]
            blank, step = ([[] for _ in range(n)] for _ in range(2)), checkpoint.history.last_step
            way = controls.precision(values)
            return checkpoint, Written(model_id, checkpoint.name, ids, *blank, sampling, step, way), notes

        yield from written_out(values, begin)

    def write_otherwise(values: dict) -> Iterator[dict]:
        def begin(sampling: SamplingConfig) -> tuple[Checkpoint, Written, list[str]]:
            checkpoint, before = kept_text(values[page.visitor], values[record])
            place = whole("sample", values[sample_number]) - 1, whole("token", values[token_number]) - 1
            ids, begun, chances = branch(checkpoint, before, *place, values[instead])
            way = controls.precision(values)
            about = before.model_id, before.name, ids, [begun], [chances], sampling, before.step, way
            return checkpoint, Written(*about, before.starts_up_to(len(begun))), []

        yield from written_out(values, begin)

    def written_out(values: dict, begin: Callable) -> Iterator[dict]:
        """What the page shows of one press: a text that grows, or the sentence that refuses it."""
        press = presses.begin(values[press_name])
        if press.overtaken:
            return
        if press.stopped:
            yield {status: quiet("Stopped before it began.")}
            return
        try:
            new_tokens, n_samples = controls.amount(values)
            page.limits.check_generation(new_tokens, n_samples)
            sampling = controls.sampling(values)
            if not values[controls.again]:
                sampling = sampling.replace(seed=_next_seed(sampling.seed, values[record]))
            checkpoint, written, notes = begin(sampling)
            stops, name = controls.stops(values), str(values[press_name] or "")
            if not stops and checkpoint.about.get("corpus") == sentences.NAME:
                stops = [sentences.END]
                notes.append("Of what follows a sentence it has learned nothing; “Stop at” ends the text elsewhere.")
            if not checkpoint.config.causal:
                notes.append(NO_MASK)
            for shown, words in _write(checkpoint, written, name, new_tokens, stops, press):
                if words is None:
                    yield {text: shown, status: quiet("Writing …"), controls.components["seed"]: sampling.seed}
                elif not press.overtaken:
                    said = " ".join(filter(None, [*words, *notes, _HOW_TO_READ]))
                    yield {text: shown, status: quiet(said), record: written.to_dict(), card: gr.Column(visible=False)}
        except ValueError as problem:
            if not press.overtaken:
                yield {status: theme.notice(sentence(str(problem)), "error")}

    outputs = [text, status, record, card, controls.components["seed"]]
    asked = {page.visitor, page.model, prompt, record, press_name, *controls.inputs}
    chosen_there = {instead, sample_number, token_number}

    def on(listen: Callable, handler: Callable, inputs: set) -> None:
        listen(None, None, [start, stop], js=buttons(writing=True), api_visibility="private")
        event = listen(handler, inputs, outputs, js=BEGIN, trigger_mode="multiple", **_LANE)
        event.then(None, None, [start, stop], js=buttons(writing=False), api_visibility="private")

    # ---- choices -----------------------------------------------------------------------------------------------------

    def kept_text(visitor: str, kept: Any) -> tuple[Checkpoint, Written]:
        """The text on the screen, and the model that wrote it, whichever is chosen by now."""
        model_id = Written.from_dict(kept, page.limits).model_id
        checkpoint = page.registry.get(model_id, visitor)
        return checkpoint, Written.from_dict(kept, page.limits, checkpoint)

    @in_words()
    def clicked(visitor, kept, event: gr.EventData):
        checkpoint, written = kept_text(visitor, kept)
        longest = max(len(sample) for sample in written.samples)
        return opened(checkpoint, written, *cell_of(event, rows=len(written.samples), columns=longest))

    @in_words()
    def numbered(visitor, kept, sample, number):
        return opened(*kept_text(visitor, kept), whole("sample", sample or 1) - 1, whole("token", number or 1) - 1)

    @in_words()
    def bar_clicked(visitor, kept, sample, number, event: gr.EventData):
        rows = rows_of(*kept_text(visitor, kept), whole("sample", sample or 1) - 1, whole("token", number or 1) - 1)
        return str(rows[index_of(event, len(rows))].token)

    choice_outputs = [card, heading, steps, table, instead, token_number, sample_number]
    text.select(clicked, [page.visitor, record], choice_outputs, **UNSEEN)
    token_number.submit(numbered, [page.visitor, record, sample_number, token_number], choice_outputs, **UNSEEN)
    bar = steps.select(bar_clicked, [page.visitor, record, sample_number, token_number], instead, **UNSEEN)

    on(partial(gr.on, [start.click, prompt.submit]), write, asked)
    on(rewrite.click, write_otherwise, asked | chosen_there)
    on(bar.success, write_otherwise, asked | chosen_there)
    stop.click(presses.stop, press_name, None, js=STOP, **QUIETLY)
    stop.click(None, None, [start, stop], js=_STOPPED, api_visibility="private")

    # ---- another model, another visit --------------------------------------------------------------------------------

    def follow_model(visitor, model_id, request: gr.Request):
        known = suggestions(page, model_id, visitor)
        linked = linked_prompt(request, "generate", model_id)
        return linked or known[0], gr.Dataset(**chips(known)), _no_mask(page, model_id, visitor)

    page.model.change(follow_model, [page.visitor, page.model], [prompt, ideas, mask], **QUIETLY)
    for sign, noted in ((page.model, CHOSEN), (page.weights, WEIGHTS)):
        sign.change(None, sign, None, js=noted, api_visibility="private")
    ideas.click(chip_text, ideas, prompt, **QUIETLY)

    def recall(visitor, kept) -> Any:
        try:
            checkpoint, written = kept_text(visitor, kept)
        except ValueError:
            return gr.skip()
        tokenizer = checkpoint.tokenizer
        head, pieces = written.head(tokenizer), written.pieces(tokenizer)
        verdicts = verdicts_on(checkpoint, ["".join(p) for p in pieces], head["given"])
        said = f"{in_words_of(verdicts)} {_HOW_TO_READ}"
        return finished("", head, written, pieces, verdicts), quiet(said.strip())

    # what a browser keeps is only there once the tab is
    page.tab.select(recall, [page.visitor, record], [text, status], js=UNLESS_WRITTEN, **QUIETLY)
    return Desk(prompt, controls)


def _write(
    checkpoint: Checkpoint, written: Written, name: str, new_tokens: int, stops: list[str], press: Press
) -> Iterator[tuple[dict, list[str] | None]]:
    """Fill `written`; yields what to show with None while it grows, and at its end once with sentences about it."""
    model, tokenizer, n_samples = checkpoint.model, checkpoint.tokenizer, len(written.samples)
    head, pieces = written.head(tokenizer), written.pieces(tokenizer)
    texts = ["".join(p) for p in pieces]
    sent = [0] * n_samples
    began, due, rebuilt, n = time.perf_counter(), 0.0, 0, 0
    streamed = stream(
        model, tokenizer, [*written.prompt, *written.samples[0]], new_tokens, written.sampling,
        n_samples=n_samples, stop=stops, shared=True, precision=written.precision,
    )  # fmt: skip
    for step, new in streamed:
        for i, token in enumerate(new):
            if token is not None:
                n += 1
                written.samples[i].append(token.id)
                written.probabilities[i].append(float(f"{token.probability:.5g}"))
                pieces[i].append(token.text)
                texts[i] += token.text
        rebuilt += step.rebuilt
        if press.stopped:
            break
        now = time.perf_counter()
        if now >= due:
            length = sum(map(len, texts))
            due = now + (1 + length / CHARACTERS_PER_UPDATE) * seconds_between_updates(model)
            state = f"{step.index + 1:,} of {new_tokens:,} tokens · {n / (now - began):,.0f} tokens/s"
            yield growing(name, head, texts, sent, state), None
            sent = [len(text) for text in texts]
    seconds = time.perf_counter() - began
    words = [f"{n:,} token{'s' * (n != 1)} in {seconds:.2f} s ({n / seconds:,.0f} tokens/s)."]
    if rebuilt:
        words.append(slides(model.config.context_length, rebuilt))
    if any(step.stopped):
        words.append("A stop text was met.")
    if press.stopped:
        words.append("Stopped; what was written is kept.")
    verdicts = verdicts_on(checkpoint, ["".join(p) for p in pieces], head["given"])
    yield finished(name, head, written, pieces, verdicts), [*filter(None, [in_words_of(verdicts)]), *words]


def slides(context: int, times: int) -> str:
    """What happened `times` times while a text was written, because the context of so many tokens was full."""
    n, often = default_slide(context), "once:" if times == 1 else f"{times:,} times: each time"
    oldest = "token" if n == 1 else f"{n:,} tokens"
    return f"The context of {context:,} tokens was full {often} its oldest {oldest} fell out and the cache was rebuilt."


def _next_seed(seed: int, kept: Any) -> int:
    """`seed`, or the one after it where the text on the screen was written with it."""
    before = kept.get("sampling") if isinstance(kept, dict) else None
    return seed + 1 if isinstance(before, dict) and before.get("seed") == seed else seed


def _no_mask(page: Page, model_id: str | None, visitor: str | None) -> str:
    """The warning of a model that was trained without a mask, as HTML; empty for any other."""
    try:
        masked = page.registry.get(model_id, visitor).config.causal
    except ValueError:
        return ""
    return "" if masked else theme.notice(NO_MASK, "warning")


_STOPPED = "() => [{__type__: 'update', interactive: true}, {__type__: 'update', interactive: false}]"
