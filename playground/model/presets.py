"""Named model configs: the teaching systems S1–S5, published shapes, and our own sizes."""

from __future__ import annotations

from typing import Any

from .config import ModelConfig


def _shape(
    vocab_size: int, context_length: int, n_layers: int, d_model: int, n_heads: int, **choices: Any
) -> ModelConfig:
    return ModelConfig(vocab_size, context_length, n_layers, d_model, n_heads, **choices)


_PLAIN_ATTENTION = {"qkv_bias": False, "attention_output_bias": False}
_NO_BIASES = {**_PLAIN_ATTENTION, "feedforward_bias": False}
_LLAMA = {"positions": "rotary", "norm": "rmsnorm", "activation": "swiglu", **_NO_BIASES}
_OURS = {**_LLAMA, "qk_norm": True, "init_std": None, "zero_init_outputs": True}

PRESETS: dict[str, ModelConfig] = {
    # the teaching systems
    "s1": _shape(
        50_000,
        512,
        6,
        512,
        8,
        positions="sinusoidal",
        activation="relu",
        qkv_bias=False,
        head_bias=True,
        dropout=0.1,
        attention_layout="separate_heads",
    ),
    "s2": _shape(65, 64, 4, 64, 4, **_PLAIN_ATTENTION, tie_embeddings=True, scale_embeddings=True, dropout=0.1),
    "s3": _shape(
        50_000, 1024, 12, 768, 12, d_ff=3072, norm_placement="post", activation="relu", head_bias=True, dropout=0.1
    ),
    "s4": _shape(28, 32, 1, 12, 3, positions="sinusoidal", **_PLAIN_ATTENTION),
    "s5": _shape(28, 32, 4, 64, 4),
    "s5-moe": _shape(28, 32, 4, 64, 4, n_experts=8),
    # published shapes: Radford et al. 2019, Touvron et al. 2023, nanoGPT's recipe for a CPU
    "gpt2-small": _shape(50_257, 1024, 12, 768, 12, gelu_tanh=True, tie_embeddings=True, scale_residual_init=True),
    "llama-7b": _shape(32_000, 2048, 32, 4096, 32, d_ff=11_008, **_LLAMA),
    "nanogpt-cpu": _shape(
        65, 64, 4, 128, 4, norm_bias=False, **_NO_BIASES, tie_embeddings=True, scale_residual_init=True
    ),
    # our own: "fast" is our quickest learner of nanoGPT's CPU text, to nanoGPT's loss
    "fast": _shape(65, 64, 2, 144, 4, **_OURS),
    "tiny": _shape(65, 128, 2, 64, 2, **_OURS),
    "small": _shape(65, 128, 4, 128, 4, **_OURS),
    "medium": _shape(65, 256, 6, 256, 8, **_OURS),
}
