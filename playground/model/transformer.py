"""The transformer: one forward pass for training, for decoding with a cache, for tracing and for editing.

A token's way: embed → (attention, MLP) × n_layers → norm → logits. Everything is here but the mixture of experts
(`moe.py`) and the kernels, whose plain formulas are beside them.

B = batch, T = new tokens, S = all tokens a query may see (cached + new), H = query heads, Hkv = key/value heads,
D = d_head, d = d_model, V = vocab_size.
"""

from __future__ import annotations

import contextlib
import copy
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from .cache import KVCache
from .config import ModelConfig
from .forward_pass import PLAIN, Pass
from .kernels.elementwise import activate, rms_norm, rotate
from .kernels.layers import Embedding, LayerNorm, Linear
from .moe import LayerRouting, MixtureOfExperts, auxiliary_loss
from .trace import no_tap

Rotary = tuple[torch.Tensor, torch.Tensor]


class ModelOutput(NamedTuple):
    """The result of a forward pass."""

    logits: torch.Tensor
    """(B, T, V): one score for every possible next token, at every position."""
    balance_loss: torch.Tensor | None
    """The term that a mixture of experts adds to the training loss, already weighted; None for a dense model."""
    expert_load: torch.Tensor | None = None
    """(MoE layers, E): share of the routed tokens that each expert got; None for a dense model."""
    routings: tuple[LayerRouting, ...] = ()
    """Where each MoE layer sent its tokens; gradients flow through it."""


class Transformer(nn.Module):
    """A decoder-only transformer. `model(ids)` is deterministic: dropout needs a generator to be passed in."""

    def __init__(self, config: ModelConfig, seed: int = 0):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocab_size, config.d_model)
        if config.positions == "learned":
            self.position_embedding = Embedding(config.context_length, config.d_model)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.final_norm = make_norm(config)
        self.head = Linear(config.d_model, config.vocab_size, bias=config.head_bias)
        if config.tie_embeddings:
            self.head.weight = self.embedding.weight
        # Tables follow from the config, so checkpoints do not carry them.
        if config.positions == "sinusoidal":
            self.register_buffer("sinusoids", sinusoidal(config.context_length, config.d_model), persistent=False)
        if config.positions == "rotary":
            cosines, sines = rotary_table(config.context_length, config.d_head, config.rotary_base)
            self.register_buffer("cosines", cosines, persistent=False)
            self.register_buffer("sines", sines, persistent=False)
        self.initialise(seed)

    def forward(self, ids: torch.Tensor, given: Pass = PLAIN) -> ModelOutput:
        """Logits (B, T, V) for the token that follows each of ids (B, T), or only the last; ids may be on any device.

        Raises ValueError if the tokens do not fit the context or the cache.
        """
        config, cache = self.config, given.cache
        self.check_room(ids.shape[1], cache)
        # positions: a slice, or (B, 1) where the texts in a cache differ in length
        at = slice(0, ids.shape[1]) if cache is None else cache.places(ids.shape[1])

        x = self.embedding(ids)  # (B, T, d)
        if config.scale_embeddings:
            x = x * math.sqrt(config.d_model)
        x = given.tap("embed", None, x)
        if config.positions == "learned":
            x = x + given.tap("positions", None, self.position_embedding.weight[at])
        elif config.positions == "sinusoidal":
            x = x + given.tap("positions", None, self.sinusoids[at])
        x = dropout(x, config.dropout, given.generator)

        rotary = (self.cosines[at], self.sines[at]) if config.positions == "rotary" else None
        routings = []
        for layer, block in enumerate(self.blocks):
            x, routing = block(x, rotary, given, layer)
            if routing is not None:
                routings.append(routing)
        if cache is not None:
            cache.advance(ids.shape[1])
        x = given.tap("final", None, self.final_norm(x))
        logits = given.tap("logits", None, self.head(x))
        if given.last_only or not routings:
            return ModelOutput(logits, None)
        load = torch.stack([routing.fraction_routed() for routing in routings])
        return ModelOutput(logits, auxiliary_loss(routings, config), load, tuple(routings))

    def on_cpu(self) -> Transformer:
        """The model itself, or a copy if it is on another device."""
        return self if self.embedding.weight.is_cpu else copy.deepcopy(self).cpu()

    def check_room(self, n_tokens: int, cache: KVCache | None = None) -> None:
        """Raise ValueError if that many more tokens do not fit the context or the cache."""
        end = n_tokens if cache is None else cache.length + n_tokens
        if end > self.config.context_length:
            raise ValueError(f"{end} tokens do not fit the context of {self.config.context_length}")
        if cache is not None and end > cache.capacity:
            raise ValueError(f"{end} tokens do not fit the cache, which has room for {cache.capacity}")

    @torch.no_grad()
    def shift_selection(self, expert_load: torch.Tensor, rate: float = 1e-3) -> None:
        """Balance without a loss: after a training step, make overloaded experts a little harder to choose.

        `expert_load` (MoE layers, E) comes from that step. Each expert's selection bias moves by `rate`, down where
        it got more than its even share (Wang et al. 2024; DeepSeek-V3). Does nothing unless `balance` is "bias".
        """
        if self.config.balance != "bias":
            return
        mixtures = [b.feedforward for b in self.blocks if isinstance(b.feedforward, MixtureOfExperts)]
        for mixture, load in zip(mixtures, expert_load):
            mixture.selection_bias += rate * torch.sign(load.mean() - load)

    def initialise(self, seed: int) -> None:
        """Draw all weights again from `seed`: matrices and embeddings normal, biases 0, norm gains 1."""
        if self.embedding.weight.is_meta:
            return  # only the shapes are wanted; drawing without memory would make torch load its compiler, for seconds
        rng = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():  # a tied head is the embedding, listed once
            kind = name.split(".")
            if "norm" in name:
                parameter.data.fill_(0.0 if kind[-1] == "bias" else 1.0)
            elif kind[-1].endswith("bias"):
                parameter.data.zero_()
            else:
                fan_in = parameter.shape[-2] if parameter.ndim == 3 else parameter.shape[-1]  # experts are (E, in, out)
                std = self.config.init_std or (0.02 if "embedding" in name else 1.0 / math.sqrt(fan_in))
                writes_residual = "down" in kind or "out" in kind  # feedforward.down, attention.out
                if writes_residual and self.config.scale_residual_init:
                    std /= math.sqrt(2 * self.config.n_layers)
                parameter.data.normal_(0.0, std, generator=rng)
                if writes_residual and self.config.zero_init_outputs:  # drawn anyway: the other weights stay the same
                    parameter.data.zero_()


class Block(nn.Module):
    """Attention, then an MLP or experts, each added to the residual stream; normed before (pre) or after (post)."""

    def __init__(self, config: ModelConfig, layer: int):
        super().__init__()
        self.config = config
        self.attention_norm = make_norm(config)
        self.attention = Attention(config)
        self.feedforward_norm = make_norm(config)
        if config.has_experts(layer):
            shared = MLP(config.replace(n_experts=0, d_ff=config.expert_width)) if config.shared_expert else None
            self.feedforward = MixtureOfExperts(config, shared)
        else:
            self.feedforward = MLP(config)

    def forward(
        self, x: torch.Tensor, rotary: Rotary | None, given: Pass, layer: int
    ) -> tuple[torch.Tensor, LayerRouting | None]:
        pre, p, tap = self.config.norm_placement == "pre", self.config.dropout, given.tap
        x = tap("resid_pre", layer, x)
        normed = tap("attn_in", layer, self.attention_norm(x) if pre else x)
        mixed = self.attention(normed, rotary, given, layer)
        if given.last_only:  # in the last block, `mixed` is the last token's alone
            x = x[:, -mixed.shape[1] :]
        x = x + dropout(mixed, p, given.generator)
        x = tap("resid_mid", layer, x if pre else self.attention_norm(x))
        normed = tap("ff_in", layer, self.feedforward_norm(x) if pre else x)
        if isinstance(self.feedforward, MixtureOfExperts):
            mlp_out, routing = self.feedforward(normed, given, layer)
        else:
            mlp_out, routing = self.feedforward(normed, given, layer), None
        x = x + dropout(mlp_out, p, given.generator)
        return tap("resid_post", layer, x if pre else self.feedforward_norm(x)), routing


class Attention(nn.Module):
    """Multi-head causal self-attention (Vaswani et al. 2017, 3.2), with grouped-query heads (Ainslie et al. 2023).

    With `attention_layout="separate_heads"` the heads are a list of small modules, each with its own three matrices;
    with "fused" one matrix makes all of Q, K and V. `fuse_heads` converts weights from the first layout to the second.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        d, H, Hkv, D = config.d_model, config.n_heads, config.kv_heads, config.d_head
        if config.attention_layout == "fused":
            self.qkv = Linear(d, (H + 2 * Hkv) * D, bias=config.qkv_bias)  # rows: all Q heads, then all K, then all V
        else:
            self.heads = nn.ModuleList(Head(config) for _ in range(H))
        if config.qk_norm:
            self.q_norm = RMSNorm(D, config.norm_eps)
            self.k_norm = RMSNorm(D, config.norm_eps)
        self.out = Linear(H * D, d, bias=config.attention_output_bias)

    def forward(self, x: torch.Tensor, rotary: Rotary | None, given: Pass, layer: int) -> torch.Tensor:
        q, k, v = self.project(x)  # (B, T, H, D), (B, T, Hkv, D), (B, T, Hkv, D)
        if self.config.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = given.tap("q", layer, q), given.tap("k", layer, k), given.tap("v", layer, v)
        if rotary is not None:
            q = given.tap("q_rotated", layer, rotate(q, *rotary))
            k = given.tap("k_rotated", layer, rotate(k, *rotary))
        if given.last_only and layer == self.config.n_layers - 1:
            q = q[:, -1:]  # only the keys and values of the other tokens are still needed
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)  # (B, H, T, D)
        if given.cache is not None:
            k, v = given.cache.append(layer, k, v)  # (B, Hkv, S, D)
        drops_weights = given.generator is not None and self.config.dropout > 0
        if given.tap is no_tap and not drops_weights:
            z = self.fused(q, k, v, given.cache)
        else:
            z = self.explicit(q, k, v, given, layer)
        z = given.tap("z", layer, z.transpose(1, 2))  # (B, T, H, D)
        return given.tap("attn_out", layer, self.out(z.flatten(2)))  # (B, T, d)

    def project(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries (B, T, H, D), keys and values (B, T, Hkv, D) of x (B, T, d)."""
        if self.config.attention_layout == "separate_heads":
            projections = [head(x) for head in self.heads]  # H × three of (B, T, D)
            q, k, v = (torch.stack(parts, dim=2) for parts in zip(*projections))
            return q, k, v
        H, Hkv, D = self.config.n_heads, self.config.kv_heads, self.config.d_head
        # split ends up calling split_with_sizes, after a detour that takes three times as long for a single token
        return self.qkv(x).view(x.shape[0], x.shape[1], H + 2 * Hkv, D).split_with_sizes((H, Hkv, Hkv), dim=2)

    def explicit(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, given: Pass, layer: int) -> torch.Tensor:
        """softmax(q·kᵀ / √D)·v: (B, H, T, D), step by step, each step shown to the tap."""
        queries_per_key = self.config.n_heads // self.config.kv_heads
        if queries_per_key > 1:
            k, v = k.repeat_interleave(queries_per_key, dim=1), v.repeat_interleave(queries_per_key, dim=1)
        scores = given.tap("scores", layer, q @ k.transpose(-2, -1) / math.sqrt(self.config.d_head))  # (B, H, T, S)
        if self.config.causal:
            seen = given.cache.seen if given.cache is not None else None
            mask = causal_mask(q.shape[2], k.shape[2], q.device) if seen is None else seen
            scores = scores.masked_fill(~mask, -math.inf)
        scores = given.tap("masked_scores", layer, scores)
        pattern = given.tap("pattern", layer, scores.softmax(dim=-1))
        return dropout(pattern, self.config.dropout, given.generator) @ v

    def fused(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cache: KVCache | None) -> torch.Tensor:
        """The same (B, H, T, D) by torch's kernel, which never holds the pattern."""
        T, S = q.shape[2], k.shape[2]
        mask, is_causal = None, self.config.causal and 1 < T == S
        if T == 1 and cache is not None:
            mask = cache.seen  # texts of different lengths in one cache
        elif 1 < T != S and self.config.causal:
            # is_causal aligns the triangle with the first key, which is wrong once earlier tokens are cached
            mask = causal_mask(T, S, q.device)
        in_fp32 = contextlib.nullcontext()
        if T > 1 and q.is_cpu and torch.bfloat16 in (q.dtype, v.dtype):
            # on a CPU the kernel's backward is five times slower in bfloat16 than in fp32
            q, k, v, in_fp32 = q.float(), k.float(), v.float(), torch.autocast("cpu", enabled=False)
        grouped = k.shape[1] != q.shape[1]
        with in_fp32:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal, enable_gqa=grouped)


class Head(nn.Module):
    """One attention head's own three projections, (B, T, d) → three of (B, T, D)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.q = Linear(config.d_model, config.d_head, bias=config.qkv_bias)
        self.k = Linear(config.d_model, config.d_head, bias=config.qkv_bias)
        self.v = Linear(config.d_model, config.d_head, bias=config.qkv_bias)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.q(x), self.k(x), self.v(x)


class MLP(nn.Module):
    """d_model → d_ff → nonlinearity → d_model; with swiglu a third matrix gates the hidden layer."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        d, width, bias = config.d_model, config.ff_width, config.feedforward_bias
        self.up = Linear(d, width, bias=bias)
        if config.activation == "swiglu":
            self.gate = Linear(d, width, bias=bias)
        self.down = Linear(width, d, bias=bias)

    def forward(self, x: torch.Tensor, given: Pass, layer: int) -> torch.Tensor:
        hidden = given.tap("ff_hidden", layer, self.hidden(x))  # (B, T, d_ff)
        return given.tap("ff_out", layer, self.down(hidden))  # (B, T, d)

    def hidden(self, x: torch.Tensor) -> torch.Tensor:
        """The hidden layer (B, T, d_ff) after its nonlinearity."""
        gate = self.gate(x) if self.config.activation == "swiglu" else None
        return activate(self.config, self.up(x), gate)


class RMSNorm(nn.Module):
    """x (…, width) → the same shape, each vector brought to a mean square of 1, then times a learned gain."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype != self.weight.dtype:  # mixed precision: sums of squares need all digits
            x = x.to(self.weight.dtype)
        return rms_norm(x, self.weight, self.eps)


def make_norm(config: ModelConfig) -> nn.Module:
    """The config's kind of normalisation over d_model."""
    if config.norm == "rmsnorm":
        return RMSNorm(config.d_model, config.norm_eps)
    return LayerNorm(config.d_model, eps=config.norm_eps, bias=config.norm_bias)


def dropout(x: torch.Tensor, probability: float, generator: torch.Generator | None) -> torch.Tensor:
    """Zero each number of x with this probability and scale the rest by 1/(1 − p) (Srivastava et al. 2014).

    Without a generator, returns x itself: evaluation, decoding and inspection need no mode switch. Two trainings in two
    threads cannot disturb each other's random numbers.
    """
    if generator is None or probability == 0.0:
        return x
    keep = torch.empty_like(x).bernoulli_(1.0 - probability, generator=generator)
    return x * keep / (1.0 - probability)


def causal_mask(n_queries: int, n_keys: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """(T, S): True where a query may look. The last query and the last key belong to the same token."""
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


def sinusoidal(length: int, d_model: int) -> torch.Tensor:
    """Fixed position vectors (length, d_model): sines in even columns, cosines in odd (Vaswani et al. 2017, 3.5)."""
    frequency = 10_000.0 ** (-_numbers(d_model, 2) / d_model)
    angles = _numbers(length)[:, None] * frequency  # (length, d_model / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).reshape(length, d_model)


def rotary_table(length: int, d_head: int, base: float) -> Rotary:
    """Cosines and sines (length, 1, d_head) by which position p turns pair i through p · base^(−2i/d_head).

    Number i of a head is paired with number i + d_head/2 (the "half" layout of Llama's published weights; the paper,
    Su et al. 2021, pairs neighbours, which is the same function with the columns of Q and K reordered). The sine of
    the first half carries the minus sign of the rotation matrix, so that `rotate` is two products and a sum.
    """
    frequency = base ** (-_numbers(d_head, 2) / d_head)
    angles = _numbers(length)[:, None] * frequency  # (length, d_head / 2)
    cosines = torch.cat((angles.cos(), angles.cos()), dim=-1)
    sines = torch.cat((-angles.sin(), angles.sin()), dim=-1)
    return cosines[:, None, :], sines[:, None, :]


def _numbers(end: int, step: int = 1) -> torch.Tensor:
    # on the CPU even where a model is built for its shapes alone: sums without memory make torch load its compiler
    return torch.arange(0, end, step, dtype=torch.float32, device="cpu")
