"""What the KV cache saves: the same tokens with and without it, what that costs, and why queries are not kept."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....engine import SamplingConfig, generate
from ....figures.courses import token_times
from ....kept import Kept
from ....model import ModelConfig
from ....words.inspect import cache_words
from ....words.pictures import times_words
from ... import theme
from ...chart import chart_place, show
from ...panel import Slot, slot
from .selection import At

TOKENS, FEWEST = 120, 20
"""New tokens at most, and at least: fewer where the context is full before, so that the cache is never rebuilt."""
TOGETHER = 15
"""Each point of the picture is the median of about this many tokens in a row."""
RULES = SamplingConfig(temperature=0.8, top_p=0.95)

WHY = """<details><summary>Why the cache keeps keys and values, but no queries</summary>
<p>A new token needs its own query <b class="q">Q</b>, and the keys <b class="k">K</b> and values <b class="v">V</b>
of all tokens so far. With a causal mask these keys and values never change, so the cache keeps them. Each query is used
once, by its own token.</p>
<p>When the context is full, the oldest quarter is dropped and the model rebuilds the cache from the rest. The old
keys and values depended on the dropped tokens.</p></details>"""

_measured = Kept(entries=32, megabytes=8)


@dataclass(frozen=True)
class Measured:
    """The same text written twice, in turn, so that a busy machine slows both."""

    lengths: list[int]
    """Tokens after each step, prompt included."""
    cached_ms: list[float]
    plain_ms: list[float]
    same: bool
    """Whether all tokens are identical."""
    largest: float
    """Difference of two scores."""
    text: str
    """The new text."""
    projections: tuple[int, int]
    held: int
    """Tokens in the cache at the end."""


def measured(at: At) -> Measured:
    """Kept as long as the model is here. Raises ValueError for a model that no cache can help."""
    look, config = at.look, at.look.config
    if not config.causal:
        raise ValueError("This model sees the future, so a new token changes every earlier key. No cache can help")
    length = min(max(config.context_length - look.length, FEWEST), TOKENS, at.page.limits.new_tokens)

    def measure() -> Measured:
        lengths, cached_ms, plain_ms, tokens, same, largest = [], [], [], [], True, 0.0
        both = (generate(look.model, list(look.ids), length, RULES, use_cache=use) for use in (True, False))
        for cached, plain in zip(*both):
            same = same and cached.tokens == plain.tokens
            largest = max(largest, (cached.logits - plain.logits).abs().max().item())
            tokens += cached.tokens
            lengths.append(cached.length)
            cached_ms.append(1000 * cached.seconds)
            plain_ms.append(1000 * plain.seconds)
        counts = (cached.projections, plain.projections)
        text = look.checkpoint.tokenizer.decode(tokens)
        return Measured(lengths, cached_ms, plain_ms, same, largest, text, counts, cached.cache_length)

    return _measured.get((look.ids, at.weights, length), measure, owner=look.model)


TEMPLATE = f"""<details class="fold" data-fold="kv"><summary>What the KV cache saves</summary>
<div class="stack">{slot("kv-proof")}
<div class="card">{chart_place("kv-times", height=280, save_name="ms-per-token")}</div>
{WHY}</div></details>"""


def slots(at: At) -> dict[str, Slot]:
    """The slots for the proof and the times; empty while the fold is closed."""
    if not at.chosen.kv:
        return {}
    makes = {"kv-proof": lambda: proof(at.look.config, measured(at)), "kv-times": lambda: times(at)}
    return {name: Slot(at.about, make, slow=True) for name, make in makes.items()}


def times(at: At) -> dict[str, Any] | None:
    """Milliseconds per token with and without the cache; None where `proof` says why nothing can be measured."""
    if not at.look.config.causal:
        return None
    found, context = measured(at), at.look.config.context_length
    points = [medians(each[1:]) for each in (found.lengths, found.cached_ms, found.plain_ms)]  # 0: the prompt
    words = f"{times_words(*points, context)} Each point is the median of about {TOGETHER} tokens."
    return show(token_times(*points, context=context), words)


def medians(times: Sequence[float]) -> list[float]:
    """Of each group of tokens in a row: a pause of a busy machine leaves no trace."""
    return [float(np.median(group)) for group in np.array_split(times, max(2, len(times) // TOGETHER))]


def proof(config: ModelConfig, found: Measured) -> str:
    """Whether both texts are the same, what was saved and what the cache holds; then the text."""
    counts = [projections // 3 for projections in found.projections]
    words = cache_words(len(found.lengths), found.same, found.largest, *counts, found.held, config.cache_bytes(1))
    return f"{theme.result(words)}<p><samp>{html.escape(found.text)}</samp></p>"
