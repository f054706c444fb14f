"""The cache walk: generation step by step, with the queries, keys and values of one head in view."""

from __future__ import annotations

from typing import Any

import gradio as gr
from numpy import ndarray

from ....figures.cachewalk import cache_panels, describe_cache
from ....figures.candidates import describe_next_tokens, next_tokens
from ....inspection import Look
from ....inspection.cachewalk import CacheStep, cache_walk
from ....service.kept import Kept
from ....service.limits import WALK_NUMBERS as MOST_NUMBERS
from ....words.numbers import bytes_text
from ... import theme
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientSlider
from .frame import Frame, Place

TITLE = "Cache walk"
NEW_TOKENS = 8
MOST_ROWS = 48


def build(frame: Frame) -> None:
    """The slider and its cards; the three panels; the next token and the table of all steps."""
    with gr.Column(elem_classes="card"):
        gr.HTML(
            theme.heading(
                "Watch the cache grow while the model writes",
                "Step 0 reads the whole prompt; every later step reads one token. A query is used in its own step and "
                "thrown away; keys and values stay, because every later token asks them again.",
            ),
            padding=False,
        )
        with gr.Row():
            slider = LenientSlider(
                0, NEW_TOKENS - 1, value=0, step=1, label="Step", info="Drag, or press Next.", elem_id="walk-slider",
                scale=4,
            )  # fmt: skip
            onward = gr.Button("Next →", variant="primary", size="md", min_width=90, scale=0, elem_id="walk-next")
        cards = gr.HTML(padding=False, elem_id="walk-cards")
        panels = Chart(height=360, save_name="cache-walk", elem_id="walk-panels")
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=300, elem_classes="card"):
            bars = Chart(height=260, save_name="next-token-walked", elem_id="walk-bars")
        with gr.Column(scale=3, min_width=320, elem_classes="card"):
            table = gr.HTML(padding=False, elem_id="walk-table")

    def draw(look: Look, place: Place, position: Any) -> dict[Any, Any]:
        steps = walk_of(look)
        index = _within(position, len(steps))
        step = steps[index]
        texts = [look.token_label(token) for token in _text(look, steps)]
        figure, words = picture(look, step, place, texts, steps[-1].held)
        best = step.probabilities.topk(min(6, look.config.vocab_size)).indices.tolist()
        labels = [look.token_label(token) for token in best]
        chances = step.probabilities[best].tolist()
        return {
            slider: gr.update(maximum=max(len(steps) - 1, 1), value=index),
            onward: gr.Button(interactive=index + 1 < len(steps)),
            cards: step_cards(look, step, steps),
            panels: show(figure, words),
            bars: show(
                next_tokens(labels, chances, chosen=0), f"What comes next. {describe_next_tokens(labels, chances)}"
            ),
            table: step_table(look, steps, index),
        }

    frame.follow(draw, [slider, onward, cards, panels, bars, table], extra=[slider])
    frame.redraws(slider.input, of=slider)
    frame.redraws(onward.click, lambda look, place, values, event: {slider: _within(values[slider], NEW_TOKENS) + 1})


def walk_of(look: Look) -> list[CacheStep]:
    """All steps of this prompt's walk. Raises ValueError where no cache can help, or all would be too much."""
    config = look.config
    per_token = config.n_layers * (2 * config.kv_heads + config.n_heads) * config.d_head
    if per_token * (look.length + NEW_TOKENS) * NEW_TOKENS > MOST_NUMBERS:
        most = MOST_NUMBERS // (per_token * NEW_TOKENS) - NEW_TOKENS
        raise ValueError(
            f"this model keeps {per_token:,} numbers per token: walk with a prompt of at most {max(most, 1)} tokens"
        )
    return _walks.get(look.ids, lambda: list(cache_walk(look.model, look.ids, NEW_TOKENS)), owner=look.model)


_walks = Kept(entries=48, megabytes=128)


def _within(position: Any, count: int) -> int:
    if not isinstance(position, (int, float)) or position != position:
        return 0
    return int(min(max(position, 0), count - 1))


def _text(look: Look, steps: list[CacheStep]) -> list[int]:
    """The prompt and every token read after it."""
    return [token for step in steps for token in step.read]


def picture(look: Look, step: CacheStep, place: Place, texts: list[str], room: int) -> tuple[dict[str, Any], str]:
    """The three panels of the chosen head, and their sentence."""
    layer, kv = place.layer, look.kv_head(place.head)
    weights: ndarray = step.patterns[layer][place.head, -1].numpy()
    most = int(weights.argmax())
    start = max(room - MOST_ROWS, 0)
    first = max(step.held_before - start, 0)
    queries = step.queries[layer, place.head].numpy()[max(start - step.held_before, 0) :]
    figure = cache_panels(
        queries,
        step.keys[layer, kv].numpy()[start:],
        step.values[layer, kv].numpy()[start:],
        texts[start:],
        first,
        room - start,
    )
    words = describe_cache(texts, step.held_before, step.held, most, float(weights[most]))
    if kv != place.head or look.config.kv_heads < look.config.n_heads:
        words += f" Query head {place.head} shares key/value head {kv}."
    if start:
        words += f" Drawn: the last {room - start} of {room} tokens."
    return figure, words


def step_cards(look: Look, step: CacheStep, steps: list[CacheStep]) -> str:
    """What this step read, made, reused, and what is held now."""
    read = "the prompt" if step.index == 0 else f"“{look.token_label(step.read[0])}”"
    saved = 100 * (1 - step.projections / step.projections_without_cache)
    return theme.stat_cards(
        [
            ("step", f"{step.index} of {len(steps) - 1}", f"reads {read}"),
            ("made now", f"{3 * len(step.read)}", "Q, K and V vectors per layer"),
            ("reused", f"{2 * step.held_before}", "K and V vectors per layer"),
            (
                "held",
                bytes_text(step.nbytes),
                f"{step.held} token{'s' * (step.held != 1)} in {look.config.n_layers} layers",
            ),
            (
                "saved so far",
                f"{saved:.0f} %",
                f"{step.projections} instead of {step.projections_without_cache}"
                if saved
                else "the first step fills the cache",
            ),
        ]
    )


def step_table(look: Look, steps: list[CacheStep], index: int) -> str:
    """All steps, this one stressed, and the proof that the cache changes nothing."""
    rows = []
    for step in steps:
        read = "the prompt" if step.index == 0 else look.token_label(step.read[0])
        shape = f"({look.config.kv_heads}, {step.held}, {look.config.d_head})"
        cells = [step.index, read, 3 * len(step.read), 2 * step.held_before, shape, f"{step.nbytes:,}",
                 step.projections, step.projections_without_cache,
                 look.token_label(step.chosen)]  # fmt: skip
        rows.append([theme.Cell(str(cell), kind="now" if step.index == index else "") for cell in cells])
    heads = ("step", "reads", "made", "reused", "K per layer", "bytes", "made so far", "without cache", "writes")
    worst = max(step.difference for step in steps)
    proof = theme.notice(
        f"Every step was also run without a cache, on the whole text: the largest difference between any two scores "
        f"is {worst:.1e}. The last token written has not been read yet, so nothing of it is held.",
        "good" if worst < 1e-2 else "warning",
    )
    full = ""
    if steps[-1].held == look.config.context_length:
        full = theme.notice(
            f"The context of {look.config.context_length} tokens is full, so the walk ends here: to go on, the oldest "
            "token would have to fall out and the whole cache be made anew.",
            "warning",
        )
    return theme.table(heads, rows, save="cache-steps") + proof + full
