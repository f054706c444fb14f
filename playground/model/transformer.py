"""Transformer: the one forward pass, which trains, decodes with a cache, is traced and is edited.

B = batch, T = tokens, d = d_model, V = vocab_size. A token's way: embed → (attend, think) × n_layers → norm → logits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import nn

from .attention import Attention
from .cache import KVCache
from .config import ModelConfig
from .dropout import dropout
from .fast.layers import Embedding, Linear
from .feedforward import FeedForward
from .moe import LayerRouting, MixtureOfExperts, balance_loss, router_z_loss
from .norms import make_norm
from .positions import rotary_table, sinusoidal
from .trace import Tap, no_tap


class ModelOutput(NamedTuple):
    """What a forward pass returns."""

    logits: torch.Tensor
    """(B, T, V): one score for every possible next token, at every position."""
    balance_loss: torch.Tensor | None
    """What a mixture of experts asks to be added to the training loss, weighted already; None for a dense model."""
    expert_load: torch.Tensor | None = None
    """(mixture layers, E): share of visits each expert got in this pass; None for a dense model."""
    routings: tuple[LayerRouting, ...] = ()
    """Where each mixture layer sent its tokens, with its gradient."""


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

    def forward(
        self,
        ids: torch.Tensor,
        *,
        cache: KVCache | None = None,
        tap: Tap = no_tap,
        rng: torch.Generator | None = None,
        last_only: bool = False,
    ) -> ModelOutput:
        """Logits (B, T, V) for the token that follows each of ids (B, T); with `last_only`, (B, 1, V) after the last.

        With a `cache`, ids are the tokens after those it holds, and it has grown by T afterwards. A `tap` sees and may
        replace every named intermediate (see `trace.py`). With `rng`, dropout is on and drawn from it.

        Raises ValueError when the tokens do not fit the context.
        """
        past = cache.length if cache is not None else 0
        end = past + ids.shape[1]
        self._check_room(end, cache)
        # positions: a slice, or (B, 1) where the texts in a cache differ in length
        at = slice(past, end) if cache is None else cache.places(ids.shape[1])

        x = self.embedding(ids)  # (B, T, d)
        if self.config.scale_embeddings:
            x = x * math.sqrt(self.config.d_model)
        x = tap("embed", None, x)
        if self.config.positions == "learned":
            x = x + tap("positions", None, self.position_embedding.weight[at])
        elif self.config.positions == "sinusoidal":
            x = x + tap("positions", None, self.sinusoids[at])
        x = dropout(x, self.config.dropout, rng)

        rotary = (self.cosines[at], self.sines[at]) if self.config.positions == "rotary" else None
        routings = []
        for layer, block in enumerate(self.blocks):
            x, routing = block(x, rotary, cache, tap, layer, rng)
            if routing is not None:
                routings.append(routing)
        if cache is not None:
            cache.advance(ids.shape[1])
        if last_only and ids.shape[1] > 1:
            x = x[:, -1:]
        x = tap("final", None, self.final_norm(x))
        logits = tap("logits", None, self.head(x))
        if not routings:
            return ModelOutput(logits, None)
        load = torch.stack([r.fraction_routed() for r in routings])
        return ModelOutput(logits, self._auxiliary_loss(routings), load, tuple(routings))

    @torch.no_grad()
    def shift_selection(self, expert_load: torch.Tensor, rate: float = 1e-3) -> None:
        """Balance without a loss: after a training step, make overloaded experts a little harder to choose.

        `expert_load` (mixture layers, E) is the step's own. Each expert's selection bias moves by `rate`, down where
        it got more than its even share (Wang et al. 2024; DeepSeek-V3). Does nothing unless `balance` is "bias".
        """
        if self.config.balance != "bias":
            return
        mixtures = [b.feedforward for b in self.blocks if isinstance(b.feedforward, MixtureOfExperts)]
        for mixture, load in zip(mixtures, expert_load):
            mixture.selection_bias += rate * torch.sign(load.mean() - load)

    def _auxiliary_loss(self, routings: list[LayerRouting]) -> torch.Tensor:
        """Mean over the mixture layers of the weighted losses that keep experts in use."""
        total = torch.zeros((), device=routings[0].logits.device)
        for routing in routings:
            if self.config.balance in ("switch", "constant"):
                total = total + self.config.balance_weight * balance_loss(routing, self.config.balance)
            if self.config.router_z_weight:
                total = total + self.config.router_z_weight * router_z_loss(routing)
        return total / len(routings)

    def initialise(self, seed: int) -> None:
        """Draw all weights anew from `seed`: matrices and embeddings normal, biases 0, norm gains 1."""
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
                if writes_residual and self.config.zero_init_outputs:  # drawn all the same: what follows stays alike
                    parameter.data.zero_()

    def _check_room(self, end: int, cache: KVCache | None) -> None:
        if end > self.config.context_length:
            raise ValueError(f"{end} tokens do not fit the context of {self.config.context_length}")
        if cache is not None and end > cache.capacity:
            raise ValueError(f"{end} tokens do not fit the cache, which has room for {cache.capacity}")


class Block(nn.Module):
    """Attention, then feed-forward, each added to the residual stream; normed before (pre) or after (post)."""

    def __init__(self, config: ModelConfig, layer: int):
        super().__init__()
        self.config = config
        self.attention_norm = make_norm(config)
        self.attention = Attention(config)
        self.feedforward_norm = make_norm(config)
        self.feedforward = MixtureOfExperts(config) if config.has_experts(layer) else FeedForward(config)

    def forward(
        self,
        x: torch.Tensor,
        rotary: tuple[torch.Tensor, torch.Tensor] | None,
        cache: KVCache | None,
        tap: Tap,
        layer: int,
        rng: torch.Generator | None,
    ) -> tuple[torch.Tensor, LayerRouting | None]:
        pre = self.config.norm_placement == "pre"
        p = self.config.dropout
        x = tap("resid_pre", layer, x)
        read = tap("attn_in", layer, self.attention_norm(x) if pre else x)
        x = x + dropout(self.attention(read, rotary, cache, tap, layer, rng), p, rng)
        x = tap("resid_mid", layer, x if pre else self.attention_norm(x))
        read = tap("ff_in", layer, self.feedforward_norm(x) if pre else x)
        if isinstance(self.feedforward, MixtureOfExperts):
            thought, routing = self.feedforward(read, tap, layer, rng)
        else:
            thought, routing = self.feedforward(read, tap, layer), None
        x = x + dropout(thought, p, rng)
        return tap("resid_post", layer, x if pre else self.feedforward_norm(x)), routing
