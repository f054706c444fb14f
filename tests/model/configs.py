"""Small configs that between them use every choice a ModelConfig offers, for tests of laws that hold for all."""

import torch

from playground.model import ModelConfig

GPU = "cuda" if torch.cuda.is_available() else "cpu"
"""Where tests put the models of functions that take one on any device."""

TINY = ModelConfig(vocab_size=11, context_length=12, n_layers=2, d_model=16, n_heads=4, init_std=0.3)

VARIANTS: dict[str, ModelConfig] = {
    "learned": TINY,
    "sinusoidal": TINY.replace(positions="sinusoidal", scale_embeddings=True),
    "rotary": TINY.replace(positions="rotary"),
    "no positions": TINY.replace(positions="none"),
    "post-norm": TINY.replace(norm_placement="post", activation="relu", head_bias=True),
    "rmsnorm, swiglu, grouped": TINY.replace(
        norm="rmsnorm", activation="swiglu", n_kv_heads=2, positions="rotary", d_ff=24, feedforward_bias=False
    ),
    "one key head, qk-norm, relu2": TINY.replace(n_kv_heads=1, qk_norm=True, activation="relu2", qkv_bias=False),
    "tied": TINY.replace(tie_embeddings=True, norm_bias=False, attention_output_bias=False, gelu_tanh=True),
    "separate heads": TINY.replace(attention_layout="separate_heads", positions="rotary", qk_norm=True),
    "experts": TINY.replace(n_experts=4, d_expert=20),
    "experts, swiglu, shared, every other layer": TINY.replace(
        n_experts=3, experts_per_token=1, moe_every=2, shared_expert=True, activation="swiglu", balance="bias"
    ),
    "all experts": TINY.replace(n_experts=3, experts_per_token=3, feedforward_bias=False, activation="relu2"),
    "sees the future": TINY.replace(causal=False),
}

CAUSAL = {name: config for name, config in VARIANTS.items() if config.causal}
