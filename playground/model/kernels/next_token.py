"""NextToken: `Transformer.forward` for one more token of each text, written out. It halves a small model's time.

R = texts, each extended by one token, d = d_model, V = vocabulary, H = query heads, Hkv = key/value heads, D = d_head,
S = all tokens a query may see.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from ..cache import KVCache
from ..forward_pass import PLAIN
from .elementwise import RMSNormWithBackward, RotationWithBackward


class NextToken:
    """Rows instead of windows, no tap, nothing that only training needs. `InferenceModel.prefill` is the plain way."""

    def __init__(self, model: Any):
        """`model`: what `strip_module_calls` returned."""
        self.model, self.config = model, model.config
        self.scale = math.sqrt(self.config.d_model) if self.config.scale_embeddings else None
        self.gains = [self._gains(block.attention) for block in model.blocks] if self.config.qk_norm else None

    def _gains(self, attention: Any) -> torch.Tensor:
        """(H + Hkv, D): the gain of every head's query and key."""
        heads = ((attention.q_norm, self.config.n_heads), (attention.k_norm, self.config.kv_heads))
        return torch.cat([norm.weight.detach().expand(n, -1) for norm, n in heads])

    def __call__(self, ids: torch.Tensor, cache: KVCache) -> torch.Tensor:
        """Logits (R, V) after ids (R, 1), which follow the tokens in the cache."""
        config, model = self.config, self.model
        model.check_room(1, cache)
        x = model.embedding(ids.select(1, 0))  # (R, d), our own from here on: sums are made in place
        if self.scale is not None:
            x = x * self.scale
        if config.positions == "learned":
            x = x + cache.of_next(model.position_embedding.weight)
        elif config.positions == "sinusoidal":
            x = x + cache.of_next(model.sinusoids)
        rotary = None
        if config.positions == "rotary":
            rotary = cache.of_next(model.cosines), cache.of_next(model.sines)  # (R or 1, 1, D)
        pre = config.norm_placement == "pre"
        for layer, block in enumerate(model.blocks):
            z = self.attention(block.attention, block.attention_norm(x) if pre else x, rotary, cache, layer)
            x = block.attention.out.add_to(x, z)
            if not pre:
                x = block.attention_norm(x)
            x = self.add_mlp(x, block.feedforward, block.feedforward_norm(x) if pre else x)
            if not pre:
                x = block.feedforward_norm(x)
        cache.advance(1)
        return model.head(model.final_norm(x))

    def attention(self, attention: Any, x: torch.Tensor, rotary: Any, cache: KVCache, layer: int) -> torch.Tensor:
        """Each head's weighted sum of values, (R, H·D), of x (R, d)."""
        H, Hkv, D = self.config.n_heads, self.config.kv_heads, self.config.d_head
        if self.config.attention_layout == "separate_heads":
            qkv = torch.cat([each[:, 0] for each in attention.project(x[:, None])], dim=1)  # (R, H + 2·Hkv, D)
        else:
            qkv = attention.qkv(x).view(-1, H + 2 * Hkv, D)
        if self.gains is not None or rotary is not None:
            qk = changed = qkv.narrow(1, 0, H + Hkv)
            if self.gains is not None:
                changed = _normed(changed, self.gains[layer], self.config.norm_eps)
            if rotary is not None:
                changed = RotationWithBackward.value(changed, *rotary)
            qk.copy_(changed)
        k, v = cache.append_one(layer, qkv.narrow(1, H, 2 * Hkv))  # (R, Hkv, S, D)
        q = qkv.narrow(1, 0, H).unsqueeze(2)
        return F.scaled_dot_product_attention(q, k, v, cache.seen, enable_gqa=Hkv < H).view(-1, H * D)

    def add_mlp(self, sums: torch.Tensor, mlp: Any, x: torch.Tensor) -> torch.Tensor:
        """Add the output of the MLP or of the experts for x (R, d) to `sums` (R, d) in place, and return it."""
        if not hasattr(mlp, "router"):
            return mlp.down.add_to(sums, mlp.hidden(x))
        rows = x[:, None]
        routing = mlp.route(rows, PLAIN, 0)
        out = mlp.few_tokens(rows, routing.experts, routing.weights)[:, 0]
        if self.config.shared_expert:
            out = out + mlp.shared.down(mlp.shared.hidden(x))
        return sums.add_(out)


def _normed(x: torch.Tensor, gains: torch.Tensor, eps: float) -> torch.Tensor:
    """`rms_norm` of every head in x (…, heads, D), each with its own gains from (heads, D)."""
    if x.is_cpu:
        return RMSNormWithBackward.value(x, gains, eps)
    return F.rms_norm(x, x.shape[-1:], None, eps) * gains
