"""GPT-2 in Transformers: which models of ours it can hold, and how settings and tensors translate.

"Language Models are Unsupervised Multitask Learners" (Radford et al. 2019).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ..model import ModelConfig
from ..model.transformer import sinusoidal
from .shapes import State
from .transformers_settings import off, on, understood

_ACTIVATIONS = ("relu", "relu2", "gelu")


def obstacles(config: ModelConfig) -> dict[str, bool]:
    return {
        "rotary positions": config.positions == "rotary",
        "RMSNorm": config.norm != "layernorm",
        "post-norm": config.norm_placement != "pre",
        "SwiGLU": config.activation == "swiglu",
        "grouped-query heads": config.kv_heads != config.n_heads,
        "QK-norm": config.qk_norm,
        "a bias on the output head": config.head_bias,
        "experts": config.n_experts > 0,
        "the missing causal mask": not config.causal,
        "scaled embeddings that are tied to the head": config.scale_embeddings and config.tie_embeddings,
    }


def config_out(config: ModelConfig) -> dict[str, Any]:
    activation = "gelu_new" if config.activation == "gelu" and config.gelu_tanh else config.activation
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": config.vocab_size,
        "n_positions": config.context_length,
        "n_embd": config.d_model,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_inner": config.ff_width,
        "activation_function": activation,
        "layer_norm_epsilon": config.norm_eps,
        "tie_word_embeddings": config.tie_embeddings,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        "bos_token_id": None,
        "eos_token_id": None,
    }


_DEFAULTS = {
    "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
}  # fmt: skip


def config_in(values: dict[str, Any]) -> ModelConfig:
    """The config of a GPT-2's config.json. Raises ValueError for what has no counterpart."""
    values = understood(values, _DEFAULTS, {"scale_attn_weights": on, "scale_attn_by_inverse_layer_idx": off})
    activation = values["activation_function"]
    if activation not in ("relu", "relu2", "gelu", "gelu_new", "gelu_pytorch_tanh"):
        raise ValueError(f"the activation {str(activation)[:60]!r} is not known")
    return ModelConfig(
        vocab_size=values["vocab_size"],
        context_length=values["n_positions"],
        n_layers=values["n_layer"],
        d_model=values["n_embd"],
        n_heads=values["n_head"],
        d_ff=values["n_inner"],
        activation=activation if activation in _ACTIVATIONS else "gelu",
        gelu_tanh=activation in ("gelu_new", "gelu_pytorch_tanh"),
        norm_eps=values["layer_norm_epsilon"],
        tie_embeddings=values["tie_word_embeddings"],
    )


_PARTS = {
    "attention_norm": "ln_1",
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "feedforward_norm": "ln_2",
    "feedforward.up": "mlp.c_fc",
    "feedforward.down": "mlp.c_proj",
}


def state_out(state: State, config: ModelConfig) -> State:
    d = config.d_model
    scale = math.sqrt(d) if config.scale_embeddings else 1.0
    out = {"transformer.wte.weight": state["embedding.weight"] * scale}
    if config.positions == "learned":
        out["transformer.wpe.weight"] = state["position_embedding.weight"]
    elif config.positions == "sinusoidal":
        out["transformer.wpe.weight"] = sinusoidal(config.context_length, d)
    else:
        out["transformer.wpe.weight"] = torch.zeros(config.context_length, d)
    if not config.tie_embeddings:
        out["lm_head.weight"] = state["head.weight"]
    for ours, theirs in _layers(config):
        weight = state[f"{ours}.weight"]
        matrix = weight.ndim == 2
        out[f"transformer.{theirs}.weight"] = weight.T if matrix else weight  # theirs are (in, out)
        # biases that our config leaves out are zeros there
        out[f"transformer.{theirs}.bias"] = state.get(f"{ours}.bias", torch.zeros(weight.shape[0]))
    return out


def state_in(found: State, config: ModelConfig) -> State:
    state = {"embedding.weight": found["wte.weight"], "position_embedding.weight": found["wpe.weight"]}
    state["head.weight"] = found["wte.weight"] if config.tie_embeddings else found["lm_head.weight"]
    for ours, theirs in _layers(config):
        weight = found[f"{theirs}.weight"]
        state[f"{ours}.weight"] = weight.T if weight.ndim == 2 else weight
        state[f"{ours}.bias"] = found[f"{theirs}.bias"]
    return state


def _layers(config: ModelConfig) -> list[tuple[str, str]]:
    """(our name, theirs) of every layer with a weight and a bias."""
    blocks = [(f"blocks.{i}.{a}", f"h.{i}.{b}") for i in range(config.n_layers) for a, b in _PARTS.items()]
    return [("final_norm", "ln_f"), *blocks]
