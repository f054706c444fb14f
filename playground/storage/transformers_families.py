"""The families of Transformers to which our models belong: which ones fit, and how settings translate.

GPT-2 ("Language Models are Unsupervised Multitask Learners", Radford et al. 2019) stands alone. The other four share
one block: Llama ("LLaMA", Touvron et al. 2023) is rotary positions, RMSNorm and SwiGLU; Mixtral ("Mixtral of Experts",
Jiang et al. 2024) puts experts in every block; Qwen3 ("Qwen3 Technical Report", Yang et al. 2025) also RMS-normalises
every query and key head before it is rotated, and Qwen3-MoE puts experts in every k-th block.

A family is a table of settings (their name → ours), used in both directions, and the values of our settings that all
its models share. Tensors are in transformers_tensors.py, the meaning of Transformers' settings in
transformers_settings.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..model import ModelConfig
from . import transformers_tensors as tensors
from .errors import CheckpointError
from .tensors import State
from .transformers_settings import off, on, understood

Config = dict[str, Any]
"""The content of a Transformers config.json."""


@dataclass(frozen=True)
class Family:
    """One architecture of Transformers."""

    name: str
    """Its model_type."""
    title: str
    """The family's usual name."""
    architecture: str
    """The Transformers class that opens it."""
    settings: dict[str, str]
    """Their name → ours, for settings that are the same on both sides."""
    constants: Config
    """Our setting's name → the value that all models of the family have."""
    defaults: Config
    """For every setting that is read: the value that Transformers assumes if config.json leaves it out."""
    only: dict[str, Callable[[Any], bool]]
    """Settings that may be present if they have one of these values."""
    needs: Callable[[ModelConfig], Iterator[tuple[bool, str]]]
    """(whether a config meets it, its description), for each further thing that the family needs."""
    more_out: Callable[[ModelConfig], Config]
    """Makes the settings of config.json that differ between the two sides."""
    more_in: Callable[[Config], Config]
    """Makes our settings from theirs; raises ValueError for one without a counterpart."""
    rows: Callable[[ModelConfig], Iterator[tensors.Row]]
    fill: Callable[[State, ModelConfig], State] = field(default=lambda state, config: state)
    """Adds tensors that the family has and ours leaves out."""

    def missing(self, config: ModelConfig) -> list[str]:
        """What would have to change for a config to fit, as name=value; empty if it fits."""
        of_experts = ("shared_expert", "moe_every")
        fixed = {name: value for name, value in self.constants.items() if config.n_experts or name not in of_experts}
        wrong = [f"{name}={value}" for name, value in fixed.items() if getattr(config, name) != value]
        return wrong + [need for fits, need in self.needs(config) if not fits]

    def config_out(self, config: ModelConfig) -> Config:
        """The config.json for a model that fits."""
        resolved = {"n_kv_heads": config.kv_heads, "d_ff": config.ff_width, "d_expert": config.expert_width}
        values = {theirs: resolved.get(ours, getattr(config, ours)) for theirs, ours in self.settings.items()}
        head = {"model_type": self.name, "architectures": [self.architecture]}
        return head | values | {"bos_token_id": None, "eos_token_id": None} | self.more_out(config)

    def config_in(self, values: Config) -> ModelConfig:
        """Our config, made from a config.json. Raises ValueError for settings without a counterpart."""
        values = understood(values, self.defaults, self.only)
        same = {ours: values[theirs] for theirs, ours in self.settings.items()}
        return ModelConfig(**self.constants | same | self.more_in(values))

    def state_out(self, state: State, config: ModelConfig) -> State:
        """Their tensors, by their names, made from ours in the fused layout."""
        return tensors.state_out(self.rows(config), self.fill(state, config))

    def state_in(self, found: State, config: ModelConfig) -> State:
        """Our tensors, made from theirs by their short names."""
        return tensors.state_in(self.rows(config), found, config)


def family_for(config: ModelConfig) -> Family:
    """The family a config belongs to. Raises a CheckpointError that says what is missing for the nearest one."""
    # of equally near families the later one, which has more options
    nearest = min(reversed(FAMILIES), key=lambda family: len(family.missing(config)))
    if missing := nearest.missing(config):
        raise CheckpointError(
            f"Transformers has no such architecture; the nearest is {nearest.title}, which needs {', '.join(missing)}"
        )
    return nearest


# ---- GPT-2 -----------------------------------------------------------------------------------------------------------


def _gpt2_needs(config: ModelConfig) -> Iterator[tuple[bool, str]]:
    yield config.positions != "rotary", "positions=learned"
    yield config.d_head * config.n_heads == config.d_model, "head_width=none"
    yield config.activation != "swiglu", "activation=gelu"
    yield config.kv_heads == config.n_heads, f"n_kv_heads={config.n_heads}"
    yield not (config.scale_embeddings and config.tie_embeddings), "scale_embeddings=False"


def _gpt2_out(config: ModelConfig) -> Config:
    tanh = config.activation == "gelu" and config.gelu_tanh
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), config.dropout)
    return {"activation_function": "gelu_new" if tanh else config.activation} | dropout


def _gpt2_in(values: Config) -> Config:
    activation, tanh = values["activation_function"], ("gelu_new", "gelu_pytorch_tanh")
    if activation not in ("relu", "relu2", "gelu", *tanh):
        raise ValueError(f"the activation {str(activation)[:60]!r} is not known")
    return {"activation": "gelu" if activation in tanh else activation, "gelu_tanh": activation in tanh}


_GPT2 = Family(
    "gpt2",
    "GPT-2",
    "GPT2LMHeadModel",
    {
        "vocab_size": "vocab_size", "n_positions": "context_length", "n_embd": "d_model", "n_layer": "n_layers",
        "n_head": "n_heads", "n_inner": "d_ff", "layer_norm_epsilon": "norm_eps",
        "tie_word_embeddings": "tie_embeddings",
    },
    {
        "norm": "layernorm", "norm_placement": "pre", "qk_norm": False, "head_bias": False, "n_experts": 0,
        "causal": True,
    },
    {
        "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
    },
    {"scale_attn_weights": on, "scale_attn_by_inverse_layer_idx": off},
    _gpt2_needs,
    _gpt2_out,
    _gpt2_in,
    tensors.gpt2_rows,
    tensors.filled_for_gpt2,
)  # fmt: skip


# ---- Llama and its kin -----------------------------------------------------------------------------------------------

_LLAMA_SETTINGS = {
    "vocab_size": "vocab_size", "max_position_embeddings": "context_length", "hidden_size": "d_model",
    "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads", "num_key_value_heads": "n_kv_heads",
    "intermediate_size": "d_ff", "rms_norm_eps": "norm_eps", "tie_word_embeddings": "tie_embeddings",
    "attention_bias": "qkv_bias",
}  # fmt: skip
_LLAMA_CONSTANTS = {
    "positions": "rotary", "norm": "rmsnorm", "norm_placement": "pre", "activation": "swiglu", "head_bias": False,
    "scale_embeddings": False, "causal": True,
}  # fmt: skip
_LLAMA_DEFAULTS = {
    "vocab_size": 32000, "max_position_embeddings": 32768, "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "intermediate_size": 11008,
    "rms_norm_eps": 1e-6, "rope_theta": 10_000.0, "rope_parameters": None, "rope_scaling": None,
    "tie_word_embeddings": False, "attention_bias": False,
}  # fmt: skip
_QWEN_DEFAULTS = {"vocab_size": 151936, "sliding_window": None, "use_sliding_window": False}
_QWEN_OUT: Config = {"use_sliding_window": False, "sliding_window": None}
_ONLY = {
    "hidden_act": lambda value: value == "silu",
    "partial_rotary_factor": lambda value: value in (None, 1),
    "layer_types": lambda value: value is None or set(value) <= {"full_attention"},
    "sliding_window": off,
    "use_sliding_window": off,
    "mlp_bias": off,
}


def _same_biases(config: ModelConfig) -> Iterator[tuple[bool, str]]:
    same = config.qkv_bias == config.attention_output_bias
    yield same, f"attention_output_bias={config.qkv_bias}"


def _needs_experts(config: ModelConfig) -> Iterator[tuple[bool, str]]:
    yield from _same_biases(config)
    yield config.n_experts > 0, "n_experts=2 or more"
    yield not (config.n_experts and config.balance == "bias"), "balance=switch"


def _llama_out(config: ModelConfig) -> Config:
    return {
        "head_dim": config.d_head,
        "hidden_act": "silu",
        "rope_theta": config.rotary_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
        "pad_token_id": None,
    }


def _llama_in(values: Config) -> Config:
    rope = (values["rope_scaling"] or {}) | (values["rope_parameters"] or {})
    for name in ("rope_scaling", "rope_parameters"):
        part = values[name] or {}
        if part.get("rope_type", part.get("type", "default")) != "default":
            raise ValueError(f"scaled rotary positions ({name}) are not known")
        if odd := set(part) - {"rope_type", "type", "rope_theta"}:
            raise ValueError(f"{min(odd)[:60]} of the rotary positions is not understood")
    usual = values["head_dim"] in (None, values["hidden_size"] / values["num_attention_heads"])
    window = values.get("sliding_window") if values.get("use_sliding_window", True) else None
    if window and window < values["max_position_embeddings"]:
        raise ValueError("sliding-window attention is not known")
    return {
        "rotary_base": float(rope.get("rope_theta", values["rope_theta"])),
        "attention_output_bias": values["attention_bias"],
        "head_width": None if usual else values["head_dim"],
    }


def _mixtral_in(values: Config) -> Config:
    if values["attention_bias"]:
        raise ValueError("attention_bias is not understood: a Mixtral has none")
    return _llama_in(values)


def _qwen3_moe_in(values: Config) -> Config:
    if not values["norm_topk_prob"]:
        raise ValueError("experts whose weights do not sum to 1 (norm_topk_prob false) are not known")
    if values["mlp_only_layers"]:
        raise ValueError("experts in blocks that are not every k-th (mlp_only_layers) are not known")
    return _llama_in(values) | {"n_experts": values["num_experts"] or values["num_local_experts"]}


def _like_llama(
    name: str,
    title: str,
    architecture: str,
    constants: Config,
    *,
    settings: dict[str, str] | None = None,
    defaults: Config | None = None,
    needs: Callable[[ModelConfig], Iterator[tuple[bool, str]]] = _same_biases,
    more_out: Callable[[ModelConfig], Config] = lambda config: {},
    more_in: Callable[[Config], Config] = _llama_in,
) -> Family:
    """A family whose blocks are Llama's, given what differs."""
    return Family(
        name, title, architecture, _LLAMA_SETTINGS | (settings or {}), _LLAMA_CONSTANTS | constants,
        _LLAMA_DEFAULTS | (defaults or {}), _ONLY, needs, lambda config: _llama_out(config) | more_out(config), more_in,
        tensors.llama_rows,
    )  # fmt: skip


_LLAMA = _like_llama(
    "llama", "Llama", "LlamaForCausalLM", {"qk_norm": False, "n_experts": 0},
    settings={"mlp_bias": "feedforward_bias"},
    defaults={"max_position_embeddings": 2048, "mlp_bias": False},
)  # fmt: skip
_MIXTRAL = _like_llama(
    "mixtral", "Mixtral", "MixtralForCausalLM",
    {"qk_norm": False, "feedforward_bias": False, "shared_expert": False, "moe_every": 1, "qkv_bias": False},
    settings={"num_local_experts": "n_experts", "num_experts_per_tok": "experts_per_token"},
    defaults={
        "max_position_embeddings": 131072, "num_key_value_heads": 8, "intermediate_size": 14336, "rms_norm_eps": 1e-5,
        "rope_theta": 1e6, "sliding_window": None, "num_experts_per_tok": 2, "num_local_experts": 8,
    },
    needs=_needs_experts,
    more_out=lambda config: {"intermediate_size": config.expert_width, "sliding_window": None},
    more_in=_mixtral_in,
)  # fmt: skip
_QWEN3 = _like_llama(
    "qwen3", "Qwen3", "Qwen3ForCausalLM", {"qk_norm": True, "n_experts": 0, "feedforward_bias": False},
    defaults=_QWEN_DEFAULTS | {"num_key_value_heads": 32, "head_dim": 128, "intermediate_size": 22016},
    more_out=lambda config: _QWEN_OUT,
)  # fmt: skip
_QWEN3_MOE = _like_llama(
    "qwen3_moe", "Qwen3-MoE", "Qwen3MoeForCausalLM",
    {"qk_norm": True, "feedforward_bias": False, "shared_expert": False},
    settings={
        "num_experts": "n_experts", "num_experts_per_tok": "experts_per_token", "moe_intermediate_size": "d_expert",
        "decoder_sparse_step": "moe_every",
    },
    defaults=_QWEN_DEFAULTS | {
        "hidden_size": 2048, "num_hidden_layers": 24, "num_key_value_heads": 4, "intermediate_size": 6144,
        "decoder_sparse_step": 1, "moe_intermediate_size": 768, "num_experts_per_tok": 8, "num_experts": None,
        "num_local_experts": 128, "norm_topk_prob": False, "mlp_only_layers": None,
    },
    needs=_needs_experts,
    # the weights of the chosen experts sum to 1, as they do here
    more_out=lambda config: _QWEN_OUT | {"norm_topk_prob": True, "mlp_only_layers": []},
    more_in=_qwen3_moe_in,
)  # fmt: skip

FAMILIES = (_GPT2, _LLAMA, _MIXTRAL, _QWEN3, _QWEN3_MOE)
