"""Named model configs: the teaching systems S1–S5, published shapes, and our own sizes."""

from __future__ import annotations

from dataclasses import dataclass

from .config import ModelConfig


@dataclass(frozen=True)
class Preset:
    """A config with a name to call it by and a sentence on what it shows."""

    name: str
    """Short key, as typed in a shell."""
    title: str
    """As written on a button."""
    config: ModelConfig
    note: str
    """One sentence: what is special about it."""


_CLASSIC = ModelConfig(vocab_size=50_000, context_length=512, n_layers=6, d_model=512, n_heads=8)

_OURS = ModelConfig(
    context_length=128,
    positions="rotary",
    norm="rmsnorm",
    activation="swiglu",
    qk_norm=True,
    qkv_bias=False,
    attention_output_bias=False,
    feedforward_bias=False,
    init_std=None,
    zero_init_outputs=True,
)

_ALL = (
    Preset(
        "s1",
        "S1 · five classes",
        _CLASSIC.replace(
            positions="sinusoidal",
            activation="relu",
            qkv_bias=False,
            head_bias=True,
            dropout=0.1,
            attention_layout="separate_heads",
        ),
        "A list of separate heads, sinusoidal positions, ReLU, an untied output layer with bias.",
    ),
    Preset(
        "s2",
        "S2 · character GPT",
        ModelConfig(
            vocab_size=65,
            context_length=64,
            n_layers=4,
            d_model=64,
            n_heads=4,
            qkv_bias=False,
            attention_output_bias=False,
            tie_embeddings=True,
            scale_embeddings=True,
            dropout=0.1,
        ),
        "Characters, GELU, learned positions, the output layer tied to the embedding.",
    ),
    Preset(
        "s3",
        "S3 · post-norm",
        ModelConfig(
            vocab_size=50_000,
            context_length=1024,
            n_layers=12,
            d_model=768,
            n_heads=12,
            d_ff=3072,
            norm_placement="post",
            activation="relu",
            head_bias=True,
            dropout=0.1,
        ),
        "The norm stands after each sum, as in the first transformer; GPT-2 small's shape, untied.",
    ),
    Preset(
        "s4",
        "S4 · shape walk",
        ModelConfig(
            vocab_size=28,
            context_length=32,
            n_layers=1,
            d_model=12,
            n_heads=3,
            positions="sinusoidal",
            qkv_bias=False,
            attention_output_bias=False,
        ),
        "Twelve numbers a token and three heads: small enough to check every shape by hand.",
    ),
    Preset(
        "s5",
        "S5 · word walkthrough",
        ModelConfig(vocab_size=28, context_length=32, n_layers=4, d_model=64, n_heads=4),
        "Words instead of characters, biased projections, learned positions, an untied output layer.",
    ),
    Preset(
        "s5-moe",
        "S5 · eight experts",
        ModelConfig(vocab_size=28, context_length=32, n_layers=4, d_model=64, n_heads=4, n_experts=8),
        "The same with a mixture of experts in every block: 8 experts, each token visits 2.",
    ),
    Preset(
        "gpt2-small",
        "GPT-2 small",
        ModelConfig(
            vocab_size=50_257,
            context_length=1024,
            n_layers=12,
            d_model=768,
            n_heads=12,
            gelu_tanh=True,
            tie_embeddings=True,
            scale_residual_init=True,
        ),
        "The published shape of Radford et al. 2019: 124 million parameters.",
    ),
    Preset(
        "llama-7b",
        "Llama 7B shape",
        ModelConfig(
            vocab_size=32_000,
            context_length=2048,
            n_layers=32,
            d_model=4096,
            n_heads=32,
            d_ff=11_008,
            positions="rotary",
            norm="rmsnorm",
            activation="swiglu",
            qkv_bias=False,
            attention_output_bias=False,
            feedforward_bias=False,
        ),
        "For arithmetic only: what a cache costs at 7 billion parameters (Touvron et al. 2023).",
    ),
    Preset(
        "nanogpt-cpu",
        "nanoGPT on a CPU",
        ModelConfig(
            vocab_size=65,
            context_length=64,
            n_layers=4,
            d_model=128,
            n_heads=4,
            norm_bias=False,
            qkv_bias=False,
            attention_output_bias=False,
            feedforward_bias=False,
            tie_embeddings=True,
            scale_residual_init=True,
        ),
        "The shape of nanoGPT's published CPU recipe, 0.8 million parameters.",
    ),
    Preset(
        "fast",
        "Fast",
        _OURS.replace(context_length=64, n_layers=2, d_model=144, n_heads=4),
        "Our quickest learner of nanoGPT's CPU text, to nanoGPT's loss: rotary, RMSNorm, QK-norm, SwiGLU.",
    ),
    Preset(
        "tiny",
        "Tiny",
        _OURS.replace(n_layers=2, d_model=64, n_heads=2),
        "A tenth of a million parameters: a few seconds of training.",
    ),
    Preset(
        "small",
        "Small",
        _OURS.replace(n_layers=4, d_model=128, n_heads=4),
        "0.8 million parameters: readable text within half a minute.",
    ),
    Preset(
        "medium",
        "Medium",
        _OURS.replace(n_layers=6, d_model=256, n_heads=8, context_length=256),
        "Five million parameters: minutes on a CPU, seconds on a GPU.",
    ),
)

PRESETS: dict[str, Preset] = {preset.name: preset for preset in _ALL}
