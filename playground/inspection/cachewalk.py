"""Cache walk: generation step by step with every query, key and value in hand, and which of them are needed again.

T = tokens read in a step, S = tokens held afterwards, H = query heads, Hkv = key/value heads, D = d_head, L = layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from ..model import KVCache, Pass, Recorder, Transformer


@dataclass(frozen=True, eq=False)
class CacheStep:
    """One pass through the model while text is being generated. Step 0 reads the prompt, each later one a token."""

    index: int
    read: tuple[int, ...]
    """The T tokens that went in."""
    held_before: int
    """Tokens whose keys and values were in the cache already."""
    queries: torch.Tensor
    """(L, H, T, D) made in this step, used in it, and gone."""
    keys: torch.Tensor
    """(L, Hkv, S, D) in the cache after the step; the last T are new. With rotary positions, as turned."""
    values: torch.Tensor
    """(L, Hkv, S, D) likewise."""
    patterns: tuple[torch.Tensor, ...]
    """Per layer (H, T, S): how much each new query listens to each held token."""
    probabilities: torch.Tensor
    """(V,) of the token after the last one read."""
    chosen: int
    """The likeliest, which the next step reads."""
    nbytes: int
    """Bytes of the keys and values held."""
    projections_without_cache: int
    """Q, K and V vectors per layer that this step and all before would make, read each the whole text."""
    difference: float
    """Largest difference between these scores and those of a pass over the whole text without a cache."""

    @property
    def held(self) -> int:
        """S: tokens held after the step."""
        return self.held_before + len(self.read)

    @property
    def projections(self) -> int:
        """Q, K and V vectors made per layer, this step's and all before: three for each token held."""
        return 3 * self.held


def cache_walk(model: Transformer, prompt: Sequence[int], new_tokens: int) -> Iterator[CacheStep]:
    """Read the prompt, then write `new_tokens` tokens, always the likeliest; a step per pass through the model.

    The last token is chosen but not read, so there are `new_tokens` steps, fewer where the context is full. Raises
    ValueError, before the first step, where there is nothing to read or no cache can help.
    """
    config = model.config
    if not config.causal:
        raise ValueError(
            "this model has no causal mask: each new token changes every earlier key, so nothing can be kept"
        )
    if not len(prompt):
        raise ValueError("the prompt is empty: type a beginning")
    if len(prompt) > config.context_length:
        raise ValueError(f"the prompt has {len(prompt)} tokens, more than the context of {config.context_length}")
    return _steps(model, [int(token) for token in prompt], new_tokens)


def _steps(model: Transformer, text: list[int], new_tokens: int) -> Iterator[CacheStep]:
    config = model.config
    cache = KVCache.allocate(config, dtype=next(model.parameters()).dtype)
    queries = "q_rotated" if config.positions == "rotary" else "q"
    without = 0
    read = tuple(text)
    for index in range(new_tokens):
        recorder, before = Recorder((queries, "pattern")), cache.length
        with torch.no_grad():
            logits = model(torch.tensor([read]), Pass(cache=cache, tap=recorder)).logits[0, -1].float()
            plain = model(torch.tensor([text])).logits[0, -1].float()
        without += 3 * len(text)
        chosen = int(logits.argmax())
        yield CacheStep(
            index=index,
            read=read,
            held_before=before,
            queries=recorder.trace.layers(queries)[:, 0].transpose(1, 2),
            keys=torch.stack([k[0, :, : cache.length].clone() for k in cache.keys]),
            values=torch.stack([v[0, :, : cache.length].clone() for v in cache.values]),
            patterns=tuple(recorder.trace["pattern", layer][0] for layer in range(config.n_layers)),
            probabilities=logits.softmax(dim=-1),
            chosen=chosen,
            nbytes=cache.nbytes,
            projections_without_cache=without,
            difference=(logits - plain).abs().max().item(),
        )
        if len(text) == config.context_length:
            return
        text, read = [*text, chosen], (chosen,)
