"""Causal self-attention: project to Q, K, V, compare, mask, blend, project back.

One formula, three ways: `explicit` is the one to read; `by_kernel` (torch's fused attention) and `blend` (bf16 on one
thread of a processor) are quicker and held equal to it by tests. Nothing in fast/ is needed to understand it.

B = batch, T = new tokens, S = all tokens a query may see (cached + new), H = query heads, Hkv = key/value heads,
D = d_head, d = d_model.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from .cache import KVCache
from .config import ModelConfig
from .dropout import dropout
from .fast.attend import attend
from .fast.bare import does_more
from .fast.halves import LONGEST, Blend, in_halves
from .fast.layers import Linear
from .fast.quicker import quicker
from .norms import RMSNorm, rms_norm
from .positions import rotate
from .trace import Tap, no_tap


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, 3.2), with grouped-query heads (Ainslie et al. 2023) if asked.

    With `attention_layout="separate_heads"` the heads are a list of small modules, each with its own three matrices;
    with "fused" one matrix makes all of Q, K and V. `fuse_heads` and `split_heads` carry weights between the two.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        d, H, Hkv, D = config.d_model, config.n_heads, config.kv_heads, config.d_head
        if config.attention_layout == "fused":
            self.qkv = Linear(d, (H + 2 * Hkv) * D, bias=config.qkv_bias)  # rows: all Q heads, all K, all V
        else:
            self.heads = nn.ModuleList(Head(config) for _ in range(H))
        if config.qk_norm:
            self.q_norm = RMSNorm(D, config.norm_eps)
            self.k_norm = RMSNorm(D, config.norm_eps)
        self.out = Linear(H * D, d, bias=config.attention_output_bias)

    def forward(
        self,
        x: torch.Tensor,
        rotary: tuple[torch.Tensor, torch.Tensor] | None,
        cache: KVCache | None,
        tap: Tap,
        layer: int,
        rng: torch.Generator | None,
    ) -> torch.Tensor:
        if self.quick(x, cache, tap, rng):
            gains = (self.q_norm.weight, self.k_norm.weight) if self.config.qk_norm else (None, None)
            return self.out(blend(self.qkv(x), self.config, *gains, *(rotary or (None, None))))
        q, k, v = self.project(x)  # (B, T, H, D), (B, T, Hkv, D), (B, T, Hkv, D)
        if self.config.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = tap("q", layer, q), tap("k", layer, k), tap("v", layer, v)
        if rotary is not None:
            q = tap("q_rotated", layer, rotate(q, *rotary))
            k = tap("k_rotated", layer, rotate(k, *rotary))
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)  # (B, H, T, D)
        if cache is not None:
            k, v = cache.append(layer, k, v)  # (B, Hkv, S, D)
        seen = cache.seen if cache is not None else None

        drops_weights = rng is not None and self.config.dropout > 0
        if tap is no_tap and not drops_weights:
            z = self.by_kernel(q, k, v, seen)
        else:
            z = self.explicit(q, k, v, tap, layer, rng, seen)
        z = tap("z", layer, z.transpose(1, 2))  # (B, T, H, D)
        return tap("attn_out", layer, self.out(z.flatten(2)))  # (B, T, d)

    def quick(self, x: torch.Tensor, cache: KVCache | None, tap: Tap, rng: torch.Generator | None) -> bool:
        """Whether all between the projections is to be one function: nobody watches, and `in_halves` says yes."""
        config = self.config
        plain = tap is no_tap and cache is None and (rng is None or config.dropout == 0)
        alike = config.attention_layout == "fused" and config.kv_heads == config.n_heads
        quick = plain and alike and x.shape[1] <= LONGEST and in_halves(x)
        return quick and not (config.qk_norm and (does_more(self.q_norm) or does_more(self.k_norm)))

    def project(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries (B, T, H, D), keys and values (B, T, Hkv, D) of x (B, T, d)."""
        if self.config.attention_layout == "separate_heads":
            made = [head(x) for head in self.heads]  # H × three of (B, T, D)
            q, k, v = (torch.stack(parts, dim=2) for parts in zip(*made))
            return q, k, v
        H, Hkv, D = self.config.n_heads, self.config.kv_heads, self.config.d_head
        # split_with_sizes is what split calls after a detour that takes three times as long for a single token
        return self.qkv(x).view(x.shape[0], x.shape[1], H + 2 * Hkv, D).split_with_sizes((H, Hkv, Hkv), dim=2)

    def by_kernel(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Blend of values (B, H, T, D) without ever holding the pattern; `seen` as in `KVCache`."""
        T = q.shape[2]
        if T == 1 or not self.config.causal:  # a single query may see every key of its own text
            return attend(q, k, v, seen)  # and only then do texts in a cache differ in length
        if k.shape[2] == T:
            return attend(q, k, v, is_causal=True)
        # is_causal aligns the triangle with the first key, which is wrong once earlier tokens are cached
        return attend(q, k, v, causal_mask(T, k.shape[2], q.device))

    def explicit(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        tap: Tap,
        layer: int,
        rng: torch.Generator | None,
        seen: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The same blend (B, H, T, D), step by step, each step shown to the tap."""
        queries_per_key = self.config.n_heads // self.config.kv_heads
        if queries_per_key > 1:
            k, v = k.repeat_interleave(queries_per_key, dim=1), v.repeat_interleave(queries_per_key, dim=1)
        scores = tap("scores", layer, q @ k.transpose(-2, -1) / math.sqrt(self.config.d_head))  # (B, H, T, S)
        if self.config.causal:
            mask = causal_mask(q.shape[2], k.shape[2], q.device) if seen is None else seen
            scores = scores.masked_fill(~mask, -math.inf)
        scores = tap("masked_scores", layer, scores)
        pattern = tap("pattern", layer, scores.softmax(dim=-1))
        return dropout(pattern, self.config.dropout, rng) @ v


class Head(nn.Module):
    """One attention head's own three projections, (B, T, d) → three of (B, T, D)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.q = Linear(config.d_model, config.d_head, bias=config.qkv_bias)
        self.k = Linear(config.d_model, config.d_head, bias=config.qkv_bias)
        self.v = Linear(config.d_model, config.d_head, bias=config.qkv_bias)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.q(x), self.k(x), self.v(x)


@quicker(by=Blend)
def blend(
    qkv: torch.Tensor,
    config: ModelConfig,
    q_gain: torch.Tensor | None,
    k_gain: torch.Tensor | None,
    cosines: torch.Tensor | None,
    sines: torch.Tensor | None,
) -> torch.Tensor:
    """What the heads read, side by side (B, T, H·D), of all queries, keys and values (B, T, 3·H·D).

    `q_gain` and `k_gain` (D,) are those of QK-norm, cosines and sines (T, 1, D) turn by position; None is without.
    """
    B, T, H = *qkv.shape[:2], config.n_heads
    q, k, v = qkv.view(B, T, 3 * H, config.d_head).split(H, dim=2)  # (B, T, H, D)
    if q_gain is not None:
        q, k = rms_norm(q, q_gain, config.norm_eps), rms_norm(k, k_gain, config.norm_eps)
    if cosines is not None:
        q, k = rotate(q, cosines, sines), rotate(k, cosines, sines)
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)  # (B, H, T, D)
    scores = q @ k.mT / math.sqrt(config.d_head)  # (B, H, T, T)
    if config.causal:
        scores = scores.masked_fill(~causal_mask(T, T, q.device), -math.inf)
    return (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2)


def causal_mask(n_queries: int, n_keys: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """(T, S): True where a query may look. The last query is the last key's own token."""
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


def fuse_heads(state: dict[str, torch.Tensor], config: ModelConfig) -> dict[str, torch.Tensor]:
    """A separate-heads state dict as the fused layout's, number for number."""
    fused = {name: tensor for name, tensor in state.items() if ".attention.heads." not in name}
    for layer in range(config.n_layers):
        at = f"blocks.{layer}.attention"
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = [state[f"{at}.heads.{h}.{name}.{kind}"] for name in "qkv" for h in range(config.n_heads)]
            fused[f"{at}.qkv.{kind}"] = torch.cat(parts)
    return fused


def split_heads(state: dict[str, torch.Tensor], config: ModelConfig) -> dict[str, torch.Tensor]:
    """A fused state dict as the separate-heads layout's, number for number; the inverse of `fuse_heads`."""
    split = {name: tensor for name, tensor in state.items() if ".attention.qkv." not in name}
    for layer in range(config.n_layers):
        at = f"blocks.{layer}.attention"
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = state[f"{at}.qkv.{kind}"].split(config.d_head)
            for i, part in enumerate(parts):
                split[f"{at}.heads.{i % config.n_heads}.{'qkv'[i // config.n_heads]}.{kind}"] = part.clone()
    return split
