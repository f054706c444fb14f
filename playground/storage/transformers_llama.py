"""Llama and its kin in Transformers: Mixtral, Qwen3 and Qwen3-MoE; who fits, and how settings and tensors translate.

One block, four names: Llama ("LLaMA", Touvron et al. 2023) is rotary positions, RMSNorm and SwiGLU; Mixtral ("Mixtral
of Experts", Jiang et al. 2024) puts experts in every block; Qwen3 ("Qwen3 Technical Report", Yang et al. 2025) also
RMS-normalises every query and key head before it is rotated, and Qwen3-MoE puts experts in every k-th block. So
`qk_norm` and `n_experts` alone say which of the four a config is.
"""

from __future__ import annotations

from typing import Any

import torch

from ..model import ModelConfig
from .shapes import State
from .transformers_settings import off, understood

# ---- who fits --------------------------------------------------------------------------------------------------------


def llama_obstacles(config: ModelConfig) -> dict[str, bool]:
    return _common_obstacles(config) | {"QK-norm": config.qk_norm, "experts": config.n_experts > 0}


def mixtral_obstacles(config: ModelConfig) -> dict[str, bool]:
    return (
        _common_obstacles(config)
        | _expert_obstacles(config)
        | {
            "QK-norm": config.qk_norm,
            "experts in only some blocks": config.n_experts > 0 and config.n_moe_layers != config.n_layers,
            "biases on Q, K and V": config.qkv_bias,
        }
    )


def qwen3_obstacles(config: ModelConfig) -> dict[str, bool]:
    return _common_obstacles(config) | {
        "the missing QK-norm": not config.qk_norm,
        "experts": config.n_experts > 0,
        "biases in the feed-forward layer": config.feedforward_bias,
    }


def qwen3_moe_obstacles(config: ModelConfig) -> dict[str, bool]:
    return _common_obstacles(config) | _expert_obstacles(config) | {"the missing QK-norm": not config.qk_norm}


def _common_obstacles(config: ModelConfig) -> dict[str, bool]:
    return {
        "no positions" if config.positions == "none" else f"{config.positions} positions": config.positions != "rotary",
        "LayerNorm": config.norm != "rmsnorm",
        "post-norm": config.norm_placement != "pre",
        f"{_ACTIVATION_WORDS[config.activation]} instead of SwiGLU": config.activation != "swiglu",
        "a bias on the output head": config.head_bias,
        "biases on only some attention projections": config.qkv_bias != config.attention_output_bias,
        "scaled embeddings": config.scale_embeddings,
        "the missing causal mask": not config.causal,
    }


def _expert_obstacles(config: ModelConfig) -> dict[str, bool]:
    return {
        "no experts": config.n_experts == 0,
        "a shared expert": config.n_experts > 0 and config.shared_expert,
        "biases in the feed-forward layer": config.feedforward_bias,
        "balancing by a selection bias": config.n_experts > 0 and config.balance == "bias",
    }


_ACTIVATION_WORDS = {"relu": "ReLU", "gelu": "GELU", "relu2": "squared ReLU", "swiglu": "SwiGLU"}

# ---- settings --------------------------------------------------------------------------------------------------------

_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}


def config_out(config: ModelConfig) -> dict[str, Any]:
    """config.json of a model that fits one of the four."""
    kind = _kind(config)
    values = {
        "model_type": kind,
        "architectures": [_ARCHITECTURES[kind]],
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
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    if kind == "llama":
        return values | {"attention_bias": config.qkv_bias, "mlp_bias": config.feedforward_bias}
    if kind == "mixtral":
        return values | {
            "num_local_experts": config.n_experts,
            "num_experts_per_tok": config.experts_per_token,
            "intermediate_size": config.expert_width,
            "sliding_window": None,
        }
    values |= {"attention_bias": config.qkv_bias, "use_sliding_window": False, "sliding_window": None}
    if kind == "qwen3":
        return values
    return values | {
        "num_experts": config.n_experts,
        "num_experts_per_tok": config.experts_per_token,
        "moe_intermediate_size": config.expert_width,
        "norm_topk_prob": True,  # the weights of the chosen experts sum to 1, as ours do
        "decoder_sparse_step": config.moe_every,
        "mlp_only_layers": [],
    }


_COMMON = {
    "vocab_size": 32000, "max_position_embeddings": 32768, "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "intermediate_size": 11008,
    "rms_norm_eps": 1e-6, "rope_theta": 10_000.0, "rope_parameters": None, "rope_scaling": None,
    "tie_word_embeddings": False, "attention_bias": False,
}  # fmt: skip
_EXPERTS = {"num_experts_per_tok": 2, "num_local_experts": 8}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": _COMMON | {"max_position_embeddings": 2048, "mlp_bias": False},
    "mixtral": _COMMON | _EXPERTS | {
        "max_position_embeddings": 131072, "num_key_value_heads": 8, "intermediate_size": 14336, "rms_norm_eps": 1e-5,
        "rope_theta": 1e6, "sliding_window": None,
    },
    "qwen3": _COMMON | {
        "vocab_size": 151936, "num_key_value_heads": 32, "head_dim": 128, "intermediate_size": 22016,
        "sliding_window": None, "use_sliding_window": False,
    },
    "qwen3_moe": _COMMON | {
        "vocab_size": 151936, "hidden_size": 2048, "num_hidden_layers": 24, "num_key_value_heads": 4,
        "intermediate_size": 6144, "sliding_window": None, "use_sliding_window": False, "decoder_sparse_step": 1,
        "moe_intermediate_size": 768, "num_experts_per_tok": 8, "num_experts": None, "num_local_experts": 128,
        "norm_topk_prob": False, "mlp_only_layers": None,
    },
}  # fmt: skip
"""What each takes a setting for that its config.json leaves out."""
_ONLY = {
    "hidden_act": lambda value: value == "silu",
    "partial_rotary_factor": lambda value: value in (None, 1),
    "layer_types": lambda value: value is None or set(value) <= {"full_attention"},
    "sliding_window": off,
    "use_sliding_window": off,
    "mlp_bias": off,
}


def config_in(values: dict[str, Any]) -> ModelConfig:
    """The config of a config.json of one of the four. Raises ValueError for what has no counterpart."""
    kind = values["model_type"]
    values = understood(values, _DEFAULTS[kind], _ONLY)
    rope = (values["rope_scaling"] or {}) | (values["rope_parameters"] or {})
    for name in ("rope_scaling", "rope_parameters"):
        part = values[name] or {}
        if part.get("rope_type", part.get("type", "default")) != "default":
            raise ValueError(f"scaled rotary positions ({name}) are not known")
        if odd := set(part) - {"rope_type", "type", "rope_theta"}:
            raise ValueError(f"{min(odd)[:60]} of the rotary positions is not understood")
    d_model, heads = values["hidden_size"], values["num_attention_heads"]
    if values["head_dim"] not in (None, d_model // heads):
        raise ValueError("heads whose width (head_dim) is not hidden_size / num_attention_heads are not known")
    window = values.get("sliding_window") if values.get("use_sliding_window", kind == "mixtral") else None
    if window and window < values["max_position_embeddings"]:
        raise ValueError("sliding-window attention is not known")
    if kind == "mixtral" and values["attention_bias"]:
        raise ValueError("attention_bias is not understood: a Mixtral has none")
    return ModelConfig(
        vocab_size=values["vocab_size"],
        context_length=values["max_position_embeddings"],
        n_layers=values["num_hidden_layers"],
        d_model=d_model,
        n_heads=heads,
        n_kv_heads=values["num_key_value_heads"],
        d_ff=values["intermediate_size"],
        positions="rotary",
        rotary_base=float(rope.get("rope_theta", values["rope_theta"])),
        norm="rmsnorm",
        norm_eps=values["rms_norm_eps"],
        activation="swiglu",
        qk_norm=kind in ("qwen3", "qwen3_moe"),
        qkv_bias=values["attention_bias"],
        attention_output_bias=values["attention_bias"],
        feedforward_bias=values.get("mlp_bias", False),
        tie_embeddings=values["tie_word_embeddings"],
        **_experts_in(kind, values),
    )


def _experts_in(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    if kind == "mixtral":
        return {"n_experts": values["num_local_experts"], "experts_per_token": values["num_experts_per_tok"]}
    if kind != "qwen3_moe":
        return {}
    if not values["norm_topk_prob"]:
        raise ValueError("experts whose weights do not sum to 1 (norm_topk_prob false) are not known")
    if values["mlp_only_layers"]:
        raise ValueError("experts in blocks that are not every k-th (mlp_only_layers) are not known")
    return {
        "n_experts": values["num_experts"] or values["num_local_experts"],
        "experts_per_token": values["num_experts_per_tok"],
        "d_expert": values["moe_intermediate_size"],
        "moe_every": values["decoder_sparse_step"],
    }


# ---- tensors ---------------------------------------------------------------------------------------------------------


def state_out(state: State, config: ModelConfig) -> State:
    """Their tensors by their names, of ours in the fused layout."""
    out = {theirs: state[ours] for ours, theirs in _same_on_both_sides(config)}
    H, Hkv, D = config.n_heads, config.kv_heads, config.d_head
    for i in range(config.n_layers):
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = state[f"blocks.{i}.attention.qkv.{kind}"].split((H * D, Hkv * D, Hkv * D))
            for name, part in zip("qkv", parts):
                out[f"model.layers.{i}.self_attn.{name}_proj.{kind}"] = part.clone()
        for ours, theirs in _expert_matrices(config, i):
            for matrix, name in zip(state[ours], theirs):  # ours are (E, in, out), theirs one (out, in) each
                out[name] = matrix.T
    return out


def state_in(found: State, config: ModelConfig) -> State:
    """Our tensors, of theirs without the leading "model."; KeyError names one that is missing."""

    def there(name: str) -> torch.Tensor:
        return found[name.removeprefix("model.")]

    state = {ours: there(theirs) for ours, theirs in _same_on_both_sides(config)}
    if config.tie_embeddings:
        state["head.weight"] = state["embedding.weight"]
    for i in range(config.n_layers):
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = [there(f"model.layers.{i}.self_attn.{name}_proj.{kind}") for name in "qkv"]
            state[f"blocks.{i}.attention.qkv.{kind}"] = torch.cat(parts)
        for ours, theirs in _expert_matrices(config, i):
            state[ours] = torch.stack([there(name).T for name in theirs])
    return state


def _same_on_both_sides(config: ModelConfig) -> list[tuple[str, str]]:
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
        if config.qk_norm:
            pairs += [(f"{ours}.attention.{n}_norm.weight", f"{theirs}.self_attn.{n}_norm.weight") for n in "qk"]
        if config.has_experts(i):
            pairs.append((f"{ours}.feedforward.router.weight", f"{theirs}.{_mixture(config)}.gate.weight"))
        else:
            for part in ("gate", "up", "down"):
                for kind in ("weight", "bias") if config.feedforward_bias else ("weight",):
                    pairs.append((f"{ours}.feedforward.{part}.{kind}", f"{theirs}.mlp.{part}_proj.{kind}"))
    return pairs


def _expert_matrices(config: ModelConfig, layer: int) -> list[tuple[str, list[str]]]:
    """(our stack of matrices, their name for each expert's own) of a block; none where it is dense."""
    if not config.has_experts(layer):
        return []
    names = ("gate_proj", "up_proj", "down_proj") if config.qk_norm else ("w1", "w3", "w2")
    at = f"model.layers.{layer}.{_mixture(config)}.experts"
    return [
        (f"blocks.{layer}.feedforward.{ours}", [f"{at}.{e}.{theirs}.weight" for e in range(config.n_experts)])
        for ours, theirs in zip(("gate", "up", "down"), names)
    ]


def _mixture(config: ModelConfig) -> str:
    """What the family calls a block's mixture of experts."""
    return "mlp" if config.qk_norm else "block_sparse_moe"


def _kind(config: ModelConfig) -> str:
    if config.qk_norm:
        return "qwen3_moe" if config.n_experts else "qwen3"
    return "mixtral" if config.n_experts else "llama"
