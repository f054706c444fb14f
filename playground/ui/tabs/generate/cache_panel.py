"""The KV cache panel: the same tokens with and without it, what that costs, and why Q is not kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from ....engine import count_projections, generate
from ....figures.kv_cache import (
    cache_growth,
    describe_cache_growth,
    describe_projections,
    describe_token_times,
    projection_bars,
    token_times,
)
from ....model import PRESETS, ModelConfig
from ...chart import Chart, Feed, show
from ...page import UNSEEN, Page
from ...prompts import read_prompt
from ...quoted import model_facts, quoted
from ...refusals import in_words
from .writing import Desk

TOKENS = 120
UPDATE_EVERY = 6

WHY = """
**Why keys and values are kept and queries are not.** A new token asks one question, its query **Q**: *which earlier
tokens matter to me?* Every earlier token answers with its key **K** and, where it is listened to, hands over its
value **V**. Those answers depend only on what stood before each of those tokens, so with a causal mask they never
change and can be kept. A query is used once, by its own token, and never asked for again.

**When the context is full**, its oldest quarter falls out. Deeper keys and values were computed while it could still
be seen, and positions that are added to the embedding all move, so what was kept is stale: the cache is rebuilt from
the tokens that remain. Then it grows again. If one token fell out at a time, every new token would need a new cache.
"""


def build(page: Page, desk: Desk) -> None:
    """A button that measures, three charts, the proof, and the arithmetic."""
    gr.Markdown(WHY)
    start = gr.Button("Measure with this prompt", elem_id="measure-cache")
    proof = gr.Markdown(elem_id="cache-proof")
    with gr.Row():
        times = Chart(height=280, save_name="ms-per-token", elem_id="cache-times")
        with gr.Column():
            projections = Chart(height=112, save_name="projections")
            growth = Chart(height=220, save_name="cache-size")
    gr.Markdown(arithmetic())

    def measure(values: dict) -> Iterator[dict]:
        with in_words():
            checkpoint = page.registry.get(values[page.model], values[page.visitor])
            model = checkpoint.model
            if not model.config.causal:
                raise ValueError(
                    "This model sees the future, so a new token changes every earlier key: no cache can help"
                )
            ids, _ = read_prompt(page, checkpoint, values[desk.prompt])
            sampling = desk.controls.sampling(values)
            length, context = min(TOKENS, page.limits.new_tokens), model.config.context_length
            lengths, cached_ms, plain_ms, nbytes, same, largest = [], [], [], [], True, 0.0
            feed = Feed()
            both = (generate(model, ids, length, sampling, use_cache=use_cache) for use_cache in (True, False))
            for cached, plain in zip(*both):  # in turn, so that a busy machine slows both
                same = same and cached.tokens == plain.tokens
                largest = max(largest, (cached.logits - plain.logits).abs().max().item())
                lengths.append(cached.length)
                cached_ms.append(1000 * cached.seconds)
                plain_ms.append(1000 * plain.seconds)
                nbytes.append(model.config.cache_bytes(cached.cache_length))
                if len(lengths) % UPDATE_EVERY == 0:
                    yield {
                        times: feed.update(
                            _times(context, lengths, cached_ms, plain_ms), f"{len(lengths)} of {length} tokens"
                        )
                    }
            counts = (cached.projections, plain.projections)
            summary = describe_token_times(lengths[1:], cached_ms[1:], plain_ms[1:], context)
            held, read = cached.cache_length, [n - 1 for n in lengths]  # the newest token was chosen, not read
            known = model_facts(page.registry, values[page.visitor], values[page.model])
            shown = {
                times: show(_times(context, lengths, cached_ms, plain_ms), summary),
                projections: show(projection_bars(*counts), describe_projections(*counts)),
                growth: show(cache_growth(read, nbytes), describe_cache_growth(read, nbytes, held)),
                proof: _proof(model.config, length, same, largest, held),
            }
            yield quoted(shown, **known, prompt=values[desk.prompt])

    inputs = {page.visitor, page.model, desk.prompt, *desk.controls.inputs}
    start.click(measure, inputs, [times, projections, growth, proof], **UNSEEN)
    # what was measured with another model does not stay under this one's name
    page.model.change(
        None, None, [times, projections, growth, proof], js="() => [null, null, null, '']", api_visibility="private"
    )


def _times(context: int, lengths: list[int], cached: list[float], plain: list[float]) -> dict[str, Any]:
    # the first step reads the whole prompt
    return token_times(lengths[1:], cached[1:], without_cache=plain[1:], context=context)


def _proof(config: ModelConfig, length: int, same: bool, largest: float, held: int) -> str:
    verdict = (
        f"✓ **All {length} tokens are identical**; the largest difference between any two scores is {largest:.1e}."
        if same
        else f"✗ The tokens differ (largest difference between two scores {largest:.1e}): please report this as a bug."
    )
    shape = f"({config.n_layers} layers, 2, {config.kv_heads} heads, {held} tokens, {config.d_head})"
    return (
        f"{verdict} The cache now holds K and V of shape {shape}: {config.cache_bytes(held):,} bytes as float32, "
        f"{config.cache_bytes(1):,} for each token."
    )


def arithmetic() -> str:
    """Worked counts that hold for every model, as a Markdown table; each is computed here."""
    small, long, llama = count_projections(5, 3), count_projections(5, 500), PRESETS["llama-7b"]
    saved = 100 * (1 - long[1] / long[0])
    gib = llama.cache_bytes(2048, bytes_per_number=2) / 2**30
    return (
        "| Q, K and V vectors per layer | without the cache | with it |\n|---|---|---|\n"
        f"| 3 tokens after a prompt of 5 | {small[0]:,} | {small[1]:,} |\n"
        f"| 500 tokens after a prompt of 5 | {long[0]:,} | {long[1]:,} ({saved:.1f} % saved) |\n\n"
        "Counted as textbooks do, with the last new token read as well. The measurement above ends when that token is "
        "chosen: with the cache, three vectors fewer. Both counts need a context with room for the whole text: "
        "whenever it is full, the cache is rebuilt from three quarters of it.\n\n"
        f"The price is memory: 2 · layers · heads · d_head · tokens · bytes. For a Llama of 7 billion parameters "
        f"(32 layers, 32 heads of 128) at 2,048 tokens in float16 that is {gib:g} GiB ({gib * 1.024**3:.2f} GB)."
    )
