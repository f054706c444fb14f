"""The families of Transformers that models of ours belong to: who fits, and how settings and tensors translate.

Pure functions between our `ModelConfig` and state and a family's config.json and tensor names; files are read and
written in transformers_io.py. The names are those of the published checkpoints, which every version of Transformers
reads: "Language Models are Unsupervised Multitask Learners" (Radford et al. 2019) for GPT-2, "LLaMA" (Touvron et al.
2023), "Mixtral of Experts" (Jiang et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..model import ModelConfig
from ..model.positions import sinusoidal

State = dict[str, torch.Tensor]

_GPT2_ACTIVATIONS = {"relu": "relu", "relu2": "relu2", "gelu": "gelu"}


@dataclass(frozen=True)
class Family:
    """One architecture of Transformers: who fits, and how names and tensors translate."""

    name: str
    """Its model_type."""
    obstacles: Callable[[ModelConfig], list[str]]
    """Which settings of a config have no place in it, in words."""
    config_out: Callable[[ModelConfig], dict[str, Any]]
    config_in: Callable[[dict[str, Any]], ModelConfig]
    state_out: Callable[[State, ModelConfig], State]
    state_in: Callable[[State, ModelConfig], State]


# ---- GPT-2 -----------------------------------------------------------------------------------------------------------


def _gpt2_obstacles(config: ModelConfig) -> list[str]:
    return _named(
        {
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
    )


def _gpt2_config_out(config: ModelConfig) -> dict[str, Any]:
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


def _gpt2_config_in(values: dict[str, Any]) -> ModelConfig:
    activation = values.get("activation_function", "gelu_new")
    if activation not in ("relu", "relu2", "gelu", "gelu_new", "gelu_pytorch_tanh"):
        raise ValueError(f"the activation {activation!r} is not known")
    for name in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        if values.get(name):
            raise ValueError(f"{name} is not known")
    return ModelConfig(
        vocab_size=values["vocab_size"],
        context_length=values.get("n_positions", 1024),
        n_layers=values["n_layer"],
        d_model=values["n_embd"],
        n_heads=values["n_head"],
        d_ff=values.get("n_inner"),
        activation=activation if activation in _GPT2_ACTIVATIONS else "gelu",
        gelu_tanh=activation in ("gelu_new", "gelu_pytorch_tanh"),
        norm_eps=values.get("layer_norm_epsilon", 1e-5),
        tie_embeddings=values.get("tie_word_embeddings", True),
    )


_GPT2_PARTS = {
    "attention_norm": "ln_1",
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "feedforward_norm": "ln_2",
    "feedforward.up": "mlp.c_fc",
    "feedforward.down": "mlp.c_proj",
}


def _gpt2_state_out(state: State, config: ModelConfig) -> State:
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
    for ours, theirs in [("final_norm", "ln_f")] + [
        (f"blocks.{i}.{a}", f"h.{i}.{b}") for i in range(config.n_layers) for a, b in _GPT2_PARTS.items()
    ]:
        weight = state[f"{ours}.weight"]
        matrix = weight.ndim == 2
        out[f"transformer.{theirs}.weight"] = weight.T if matrix else weight  # theirs are (in, out)
        # biases that our config leaves out are zeros there
        out[f"transformer.{theirs}.bias"] = state.get(f"{ours}.bias", torch.zeros(weight.shape[0]))
    return out


def _gpt2_state_in(found: State, config: ModelConfig) -> State:
    state = {"embedding.weight": found["wte.weight"], "position_embedding.weight": found["wpe.weight"]}
    state["head.weight"] = found["wte.weight"] if config.tie_embeddings else found["lm_head.weight"]
    for ours, theirs in [("final_norm", "ln_f")] + [
        (f"blocks.{i}.{a}", f"h.{i}.{b}") for i in range(config.n_layers) for a, b in _GPT2_PARTS.items()
    ]:
        weight = found[f"{theirs}.weight"]
        state[f"{ours}.weight"] = weight.T if weight.ndim == 2 else weight
        state[f"{ours}.bias"] = found[f"{theirs}.bias"]
    return state


# ---- Llama and Mixtral -----------------------------------------------------------------------------------------------


def _llama_obstacles(config: ModelConfig) -> list[str]:
    return _rotary_obstacles(config) + _named({"experts": config.n_experts > 0})


def _mixtral_obstacles(config: ModelConfig) -> list[str]:
    return _rotary_obstacles(config) + _named(
        {
            "no experts": config.n_experts == 0,
            "experts in only some blocks": config.n_experts > 0 and config.n_moe_layers != config.n_layers,
            "a shared expert": config.shared_expert,
            "biases in the feed-forward layer": config.feedforward_bias,
            "biases on Q, K and V": config.qkv_bias,
            "balancing by a selection bias": config.n_experts > 0 and config.balance == "bias",
        }
    )


def _rotary_obstacles(config: ModelConfig) -> list[str]:
    return _named(
        {
            f"{config.positions} positions": config.positions != "rotary",
            "LayerNorm": config.norm != "rmsnorm",
            "post-norm": config.norm_placement != "pre",
            f"{config.activation} instead of SwiGLU": config.activation != "swiglu",
            "QK-norm": config.qk_norm,
            "a bias on the output head": config.head_bias,
            "biases on only some attention projections": config.qkv_bias != config.attention_output_bias,
            "scaled embeddings": config.scale_embeddings,
            "the missing causal mask": not config.causal,
        }
    )


def _llama_config_out(config: ModelConfig) -> dict[str, Any]:
    values = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.d_head,
        "intermediate_size": config.ff_width,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rotary_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
        "attention_bias": config.qkv_bias,
        "mlp_bias": config.feedforward_bias,
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    if config.n_experts:
        del values["mlp_bias"], values["attention_bias"]
        values |= {
            "model_type": "mixtral",
            "architectures": ["MixtralForCausalLM"],
            "num_local_experts": config.n_experts,
            "num_experts_per_tok": config.experts_per_token,
            "intermediate_size": config.expert_width,
            "sliding_window": None,
        }
    return values


def _llama_config_in(values: dict[str, Any]) -> ModelConfig:
    rope = values.get("rope_parameters") or values.get("rope_scaling") or {}
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        raise ValueError("scaled rotary positions are not known")
    if values.get("hidden_act", "silu") != "silu":
        raise ValueError(f"the activation {values['hidden_act']!r} is not known")
    d_model, heads = values["hidden_size"], values["num_attention_heads"]
    if values.get("head_dim") not in (None, d_model // heads):
        raise ValueError("heads whose width is not hidden_size / num_attention_heads are not known")
    if values.get("sliding_window") and values["sliding_window"] < values.get("max_position_embeddings", 0):
        raise ValueError("sliding-window attention is not known")
    moe = values["model_type"] == "mixtral"
    return ModelConfig(
        vocab_size=values["vocab_size"],
        context_length=values.get("max_position_embeddings", 2048),
        n_layers=values["num_hidden_layers"],
        d_model=d_model,
        n_heads=heads,
        n_kv_heads=values.get("num_key_value_heads"),
        d_ff=values["intermediate_size"],
        positions="rotary",
        rotary_base=float(rope.get("rope_theta", values.get("rope_theta", 10_000.0))),
        norm="rmsnorm",
        norm_eps=values.get("rms_norm_eps", 1e-6),
        activation="swiglu",
        qkv_bias=values.get("attention_bias", False),
        attention_output_bias=values.get("attention_bias", False),
        feedforward_bias=values.get("mlp_bias", False),
        tie_embeddings=values.get("tie_word_embeddings", False),
        n_experts=values["num_local_experts"] if moe else 0,
        experts_per_token=values["num_experts_per_tok"] if moe else 2,
    )


_EXPERT_PARTS = (("gate", "w1"), ("up", "w3"), ("down", "w2"))


def _llama_names(config: ModelConfig) -> list[tuple[str, str]]:
    """(our name, theirs) of every tensor that is the same on both sides."""
    pairs = [("embedding.weight", "model.embed_tokens.weight"), ("final_norm.weight", "model.norm.weight")]
    if not config.tie_embeddings:
        pairs.append(("head.weight", "lm_head.weight"))
    for i in range(config.n_layers):
        ours, theirs = f"blocks.{i}", f"model.layers.{i}"
        pairs += [
            (f"{ours}.attention_norm.weight", f"{theirs}.input_layernorm.weight"),
            (f"{ours}.feedforward_norm.weight", f"{theirs}.post_attention_layernorm.weight"),
            (f"{ours}.attention.out.weight", f"{theirs}.self_attn.o_proj.weight"),
        ]
        if config.attention_output_bias:
            pairs.append((f"{ours}.attention.out.bias", f"{theirs}.self_attn.o_proj.bias"))
        if config.n_experts:
            pairs.append((f"{ours}.feedforward.router.weight", f"{theirs}.block_sparse_moe.gate.weight"))
        else:
            for part in ("gate", "up", "down"):
                for kind in ("weight", "bias") if config.feedforward_bias else ("weight",):
                    pairs.append((f"{ours}.feedforward.{part}.{kind}", f"{theirs}.mlp.{part}_proj.{kind}"))
    return pairs


def _llama_state_out(state: State, config: ModelConfig) -> State:
    out = {theirs: state[ours] for ours, theirs in _llama_names(config)}
    H, Hkv, D = config.n_heads, config.kv_heads, config.d_head
    for i in range(config.n_layers):
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = state[f"blocks.{i}.attention.qkv.{kind}"].split((H * D, Hkv * D, Hkv * D))
            for name, part in zip("qkv", parts):
                out[f"model.layers.{i}.self_attn.{name}_proj.{kind}"] = part.clone()
        if config.n_experts:
            at, experts = f"blocks.{i}.feedforward", f"model.layers.{i}.block_sparse_moe.experts"
            for ours, theirs in _EXPERT_PARTS:
                for e, matrix in enumerate(state[f"{at}.{ours}"]):  # ours are (E, in, out), theirs one (out, in) each
                    out[f"{experts}.{e}.{theirs}.weight"] = matrix.T
    return out


def _llama_state_in(found: State, config: ModelConfig) -> State:
    state = {ours: found[theirs.removeprefix("model.")] for ours, theirs in _llama_names(config)}
    if config.tie_embeddings:
        state["head.weight"] = state["embedding.weight"]
    for i in range(config.n_layers):
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = [found[f"layers.{i}.self_attn.{name}_proj.{kind}"] for name in "qkv"]
            state[f"blocks.{i}.attention.qkv.{kind}"] = torch.cat(parts)
        if config.n_experts:
            at, experts = f"blocks.{i}.feedforward", f"layers.{i}.block_sparse_moe.experts"
            for ours, theirs in _EXPERT_PARTS:
                matrices = [found[f"{experts}.{e}.{theirs}.weight"].T for e in range(config.n_experts)]
                state[f"{at}.{ours}"] = torch.stack(matrices)
    return state


def _named(found: dict[str, bool]) -> list[str]:
    return [name for name, stands_in_the_way in found.items() if stands_in_the_way]


FAMILIES = (
    Family("gpt2", _gpt2_obstacles, _gpt2_config_out, _gpt2_config_in, _gpt2_state_out, _gpt2_state_in),
    Family("llama", _llama_obstacles, _llama_config_out, _llama_config_in, _llama_state_out, _llama_state_in),
    Family("mixtral", _mixtral_obstacles, _llama_config_out, _llama_config_in, _llama_state_out, _llama_state_in),
)
