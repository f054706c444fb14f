"""Writing: the prompt, the text as it streams, and the table behind every token of it."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
import torch

from ....data import Tokenizer, visible
from ....decoding import SamplingConfig, explain, generate
from ....model import Transformer
from ....storage import Checkpoint
from ...chart import Chart, show
from ...figures.candidates import describe_sampling_steps, sampling_steps
from ...figures.wire import percent
from ...lenient import LenientDropdown
from ...links import copy_link, linked_prompt
from ...page import Page, in_words
from ...prompts import read_prompt, suggestions
from . import controls as sampling_controls
from .controls import Controls
from .tokens import TokenText, coloured, plain

UPDATES_PER_SECOND = 15
TABLE_ROWS = 12
PUNCTUATION_NOTE = "Dark tokens surprised the model, pale ones it expected. Click one to open the choice behind it."


@dataclass
class Desk:
    """The parts of this tab that its experiments share."""

    prompt: gr.Textbox
    controls: Controls


@dataclass
class Written:
    """A finished text: all that is needed to open any of its choices again. Travels to the page as plain values."""

    model_id: str
    prompt: list[int]
    samples: list[list[int]]
    probabilities: list[list[float]]
    sampling: SamplingConfig

    def to_dict(self) -> dict[str, Any]:
        return {
            "model_id": self.model_id,
            "prompt": self.prompt,
            "samples": self.samples,
            "probabilities": self.probabilities,
            "sampling": self.sampling.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Any, limits, model: Transformer | None = None) -> Written:
        """From what the page sent back, which anybody may have written."""
        try:
            written = cls(
                str(values["model_id"]),
                [int(t) for t in values["prompt"]],
                [[int(t) for t in sample] for sample in values["samples"]],
                [[float(p) for p in sample] for sample in values["probabilities"]],
                SamplingConfig(**values["sampling"]),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise ValueError("There is no text to open yet: press Generate first") from problem
        lengths = [len(s) for s in written.samples]
        if len(lengths) > limits.samples or any(n > limits.new_tokens * 4 for n in lengths):
            raise ValueError("This text is longer than anything written here: press Generate again")
        if len(written.prompt) > limits.prompt or not written.prompt:
            raise ValueError("The prompt of this text cannot be read: press Generate again")
        if [len(p) for p in written.probabilities] != lengths:
            raise ValueError("This text's record is damaged: press Generate again")
        if model is not None:
            known = range(model.config.vocab_size)
            if any(t not in known for ids in (written.prompt, *written.samples) for t in ids):
                raise ValueError("This text was written by another model: press Generate again")
        return written


def build(page: Page) -> Desk:
    """Prompt and controls on the left, the text on the right, the opened choice below it."""
    stopping: set[str] = set()  # visitors who have pressed Stop
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=300):
            prompt = gr.Textbox(
                suggestions(page, page.registry.default, None)[0],
                label="Prompt",
                lines=3,
                max_lines=8,
                info="The model goes on from here.",
                elem_id="generate-prompt",
            )
            ideas = gr.Dataset(
                components=[prompt],
                samples=[[s] for s in suggestions(page, page.registry.default, None)],
                label="Beginnings this model knows",
                show_label=True,
                type="values",
            )
            with gr.Row():
                start = gr.Button("Generate", variant="primary", elem_id="generate-start")
                stop = gr.Button("Stop", elem_id="generate-stop", interactive=False)
            controls = sampling_controls.build(page.limits)
        with gr.Column(scale=3, min_width=320):
            text = TokenText(elem_id="generate-text")
            status = gr.Markdown(
                "Press **Generate**: the text appears here as it is written.", elem_id="generate-status"
            )
            copy_link(page, "generate")
            with gr.Column(visible=False, elem_classes="card") as opened:
                heading = gr.Markdown(elem_id="choice-heading")
                with gr.Row():
                    sample_number = gr.Number(1, label="Sample", precision=0, minimum=1, visible=False)
                    token_number = gr.Number(1, label="Token", precision=0, minimum=1, info="Or click it above.")
                    instead = LenientDropdown([], label="Go on with another token", info="Or click its bar.", scale=2)
                    rewrite = gr.Button("Continue from here", scale=1, min_width=120, elem_id="rewrite")
                steps = Chart(height=380, save_name="choice", clickable=True, elem_id="choice-chart")
                table = gr.Dataframe(
                    headers=["token", "score", "probability", "÷ temperature", "after it", "cut by", "drawn with"],
                    interactive=False,
                    label="scores → temperature → cut-offs → probabilities → choice",
                    elem_id="choice-table",
                )
    # what was written, kept by the visitor's own browser, so that a reload still has it
    record = gr.BrowserState(None, storage_key="playground-written", secret="playground-written")
    page.share("generate.prompt", prompt)

    def write(values: dict) -> Iterator[Any]:
        yield from _write(page, stopping, values, values[prompt], None)

    def write_otherwise(values: dict) -> Iterator[Any]:
        yield from _write(page, stopping, values, None, values[instead])

    def _write(page, stopping, values, prompt_text, token) -> Iterator[Any]:
        visitor, model_id = values[page.visitor], values[page.model]
        with in_words():
            checkpoint = page.registry.get(model_id, visitor)
            new_tokens, n_samples = controls.amount(values)
            sampling = controls.sampling(values)
            page.limits.check_generation(new_tokens, n_samples)
            notes = []
            if token is None:
                ids, notes = read_prompt(page, checkpoint, prompt_text)
                begun: list[int] = []
                known: list[float] = []
            else:
                before = Written.from_dict(values[record], page.limits, checkpoint.model)
                if before.model_id != model_id:
                    raise ValueError("This text was written by another model: press Generate again")
                n_samples = 1
                ids, begun, known = _branch(checkpoint, before, values[sample_number], values[token_number], token)
            stopping.discard(visitor)
            final = None
            for final in _stream(checkpoint, ids, begun, known, new_tokens, sampling, n_samples,
                                 controls.stops(values), lambda: visitor in stopping, notes):  # fmt: skip
                written, state = final
                if written is None:
                    yield {text: state[0], status: state[1], stop: gr.Button(interactive=True)}
                else:
                    written.model_id = model_id
                    yield {
                        text: state[0],
                        status: state[1],
                        stop: gr.Button(interactive=False),
                        record: written.to_dict(),
                        opened: gr.Column(visible=False),
                    }

    outputs = [text, status, stop, record, opened]
    shared = {page.visitor, page.model, prompt, record, *controls.inputs}
    for event in (start.click, prompt.submit):
        event(
            write, shared, outputs, concurrency_limit=4, concurrency_id="generate", show_progress="hidden",
            api_visibility="private", trigger_mode="once",
        )  # fmt: skip
    stop.click(lambda visitor: stopping.add(visitor), page.visitor, None, queue=False, api_visibility="private")

    choice_outputs = [opened, heading, steps, table, instead, token_number, sample_number]

    def open_choice(visitor, model_id, kept, sample: int, number: int):
        with in_words():
            checkpoint = page.registry.get(model_id, visitor)
            written = Written.from_dict(kept, page.limits, checkpoint.model)
            if written.model_id != model_id:
                raise ValueError("This text was written by another model: press Generate again")
            return _opened(checkpoint, written, sample, number)

    def clicked(visitor, model_id, kept, event: gr.SelectData):
        return open_choice(visitor, model_id, kept, event.index[0], event.index[1])

    def numbered(visitor, model_id, kept, sample, number):
        return open_choice(visitor, model_id, kept, int(sample or 1) - 1, int(number or 1) - 1)

    quiet = {"show_progress": "hidden", "api_visibility": "private"}
    text.select(clicked, [page.visitor, page.model, record], choice_outputs, **quiet)
    token_number.submit(
        numbered, [page.visitor, page.model, record, sample_number, token_number], choice_outputs, **quiet
    )
    branching = {*shared, instead, sample_number, token_number}
    rewrite.click(write_otherwise, branching, outputs, concurrency_limit=4, concurrency_id="generate", **quiet)

    def bar_clicked(kept, sample, number, visitor, model_id, event: gr.SelectData):
        with in_words():
            checkpoint = page.registry.get(model_id, visitor)
            written = Written.from_dict(kept, page.limits, checkpoint.model)
            rows = _rows(checkpoint, written, int(sample or 1) - 1, int(number or 1) - 1)
            return str(rows[int(event.index[1])].token)

    steps.select(
        bar_clicked, [record, sample_number, token_number, page.visitor, page.model], instead, **quiet
    ).success(write_otherwise, branching, outputs, concurrency_limit=4, concurrency_id="generate", **quiet)

    def follow_model(visitor, model_id, request: gr.Request):
        known = suggestions(page, model_id, visitor)
        return (
            linked_prompt(request, "generate", model_id) or known[0],
            gr.Dataset(samples=[[s] for s in known]),
            gr.Column(visible=False),
        )

    page.model.change(follow_model, [page.visitor, page.model], [prompt, ideas, opened], queue=False, **quiet)
    ideas.click(lambda sample: sample[0], ideas, prompt, queue=False, **quiet)
    return Desk(prompt, controls)


def _stream(checkpoint, ids, begun, known, new_tokens, sampling, n_samples, stops, stopped, notes):
    """Yield (None, (html, status)) while the text grows, then (Written, (coloured html, status)) once."""
    tokenizer, model = checkpoint.tokenizer, checkpoint.model
    samples = [list(begun) for _ in range(n_samples)]
    probabilities = [list(known) for _ in range(n_samples)]
    over = [False] * n_samples
    began, drawn, rebuilt, step = time.perf_counter(), 0.0, 0, None
    for step in generate(
        model, ids + begun, new_tokens, sampling, n_samples=n_samples, tokenizer=tokenizer, stop=stops
    ):
        for i, token in enumerate(step.tokens):
            if not over[i]:
                samples[i].append(token)
                probabilities[i].append(step.model_probability[i])
        over = list(step.stopped)
        rebuilt += step.rebuilt
        now = time.perf_counter()
        if now - drawn >= 1 / UPDATES_PER_SECOND:
            drawn = now
            rate = (step.index + 1) * n_samples / (now - began)
            progress = f"{step.index + 1:,} of {new_tokens:,} tokens · {rate:,.0f} tokens/s"
            yield None, (plain(tokenizer, ids, samples), progress)
        if stopped():
            notes = [*notes, "Stopped; what was written is kept."]
            break
    seconds = time.perf_counter() - began
    n = (step.index + 1) * n_samples
    words = [f"{n:,} tokens in {seconds:.2f} s ({n / seconds:,.0f} tokens/s)."]
    if rebuilt:
        words.append(
            f"The context of {model.config.context_length} tokens was full, so its oldest token fell out "
            f"and the cache was rebuilt {rebuilt:,} times."
        )
    if any(over):
        words.append("A stop text was met.")
    written = Written("", ids, samples, probabilities, sampling)
    yield written, (coloured(tokenizer, ids, samples, probabilities), " ".join([*words, *notes, PUNCTUATION_NOTE]))


def _branch(
    checkpoint: Checkpoint, written: Written, sample, number, token
) -> tuple[list[int], list[int], list[float]]:
    """Prompt, kept tokens with the new one at their end, and the model's probabilities of them."""
    sample, index = _place(written, int(sample or 1) - 1, int(number or 1) - 1)
    try:
        token = int(token)
    except (TypeError, ValueError):
        raise ValueError("Choose the token to go on with first: in the list, or by clicking its bar") from None
    if token not in range(checkpoint.config.vocab_size):
        raise ValueError("The model does not know that token: choose one from the list")
    logits, _ = _scores(checkpoint.model, written, sample, index)
    probability = logits.softmax(0)[token].item()
    return (
        written.prompt,
        [*written.samples[sample][:index], token],
        [*written.probabilities[sample][:index], probability],
    )


def _place(written: Written, sample: int, index: int) -> tuple[int, int]:
    if not 0 <= sample < len(written.samples):
        raise ValueError(f"There are {len(written.samples)} samples: choose one of them")
    if not 0 <= index < len(written.samples[sample]):
        raise ValueError(f"The text has {len(written.samples[sample]):,} new tokens: choose one of them")
    return sample, index


@torch.inference_mode()
def _scores(model: Transformer, written: Written, sample: int, index: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The scores (V,) that token `index` was chosen from, computed again, and the ids (T,) before it."""
    ids = torch.tensor(written.prompt + written.samples[sample][:index])
    return model(ids[None, -model.config.context_length :]).logits[0, -1].float(), ids


def _rows(checkpoint: Checkpoint, written: Written, sample: int, index: int):
    sample, index = _place(written, sample, index)
    logits, ids = _scores(checkpoint.model, written, sample, index)
    return explain(logits, ids, written.sampling, rows=TABLE_ROWS, always=(written.samples[sample][index],))


def _opened(checkpoint: Checkpoint, written: Written, sample: int, index: int) -> tuple:
    """The opened choice: heading, chart, table, the list of alternatives, and the two numbers."""
    sample, index = _place(written, sample, index)
    rows = _rows(checkpoint, written, sample, index)
    chosen_token = written.samples[sample][index]
    chosen = next(i for i, row in enumerate(rows) if row.token == chosen_token)
    labels = [_label(checkpoint.tokenizer, row.token) for row in rows]
    drawn = [
        {
            "label": label,
            "raw_probability": row.raw_probability,
            "tempered_probability": row.tempered_probability,
            "probability": row.probability,
            "removed_by": row.removed_by,
        }
        for label, row in zip(labels, rows)
    ]
    table = [
        [
            ("▸ " if i == chosen else "") + label,
            f"{row.logit:.2f}",
            percent(row.raw_probability),
            f"{row.score:.2f}",
            percent(row.tempered_probability),
            row.removed_by or "",
            percent(row.probability),
        ]
        for i, (label, row) in enumerate(zip(labels, rows))
    ]
    heading = f"**Token {index + 1:,}: “{_markdown(labels[chosen])}”** – how it was chosen"
    return (
        gr.Column(visible=True),
        heading,
        show(sampling_steps(drawn, chosen=chosen), describe_sampling_steps(drawn, chosen=chosen)),
        table,
        gr.Dropdown(
            choices=[(f"{label} ({percent(row.raw_probability)})", str(row.token)) for label, row in zip(labels, rows)],
            value=str(rows[chosen].token),
        ),
        gr.Number(index + 1, maximum=len(written.samples[sample])),
        gr.Number(sample + 1, visible=len(written.samples) > 1, maximum=len(written.samples)),
    )


def _label(tokenizer: Tokenizer, token: int) -> str:
    return visible(tokenizer.token_text(token))


def _markdown(text: str) -> str:
    """A token's text where Markdown is read: nothing in it may mean anything."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|~$" else html.escape(c) for c in text)
