"""Tensors of Transformers' models: one table per family, whose rows translate in both directions.

A row is (our name, their names, how): one tensor of ours, its counterparts there, and how to convert between them.
Their names are those of the published checkpoints, which every version of Transformers reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from ..model import ModelConfig
from ..model.transformer import sinusoidal
from .tensors import State


@dataclass(frozen=True)
class How:
    """How one of our tensors is split into theirs, and put together from them."""

    apart: Callable[[torch.Tensor], Sequence[torch.Tensor]]
    together: Callable[[Sequence[torch.Tensor]], torch.Tensor]


Row = tuple[str, list[str], How]

_SAME = How(lambda ours: [ours], lambda theirs: theirs[0])
_TRANSPOSED = How(lambda ours: [ours.T], lambda theirs: theirs[0].T)
_STACKED = How(lambda ours: [matrix.T for matrix in ours], lambda theirs: torch.stack([matrix.T for matrix in theirs]))
"""Our experts are one tensor (E, in, out), theirs one (out, in) for each expert."""


def state_out(rows: Iterator[Row], state: State) -> State:
    """Their tensors, by their names, made from ours in the fused layout."""
    return {name: part for ours, theirs, how in rows for name, part in zip(theirs, how.apart(state[ours]))}


def state_in(rows: Iterator[Row], found: State, config: ModelConfig) -> State:
    """Our tensors, made from theirs by their short names."""
    state = {ours: how.together([found[short_name(name)] for name in theirs]) for ours, theirs, how in rows}
    if config.tie_embeddings:
        state["head.weight"] = state["embedding.weight"]
    return state


def short_name(name: str) -> str:
    """A tensor's name without the prefix for the whole model, which only some files have."""
    return name.removeprefix("transformer.").removeprefix("model.")


# ---- GPT-2 -----------------------------------------------------------------------------------------------------------

_GPT2_NORMS = {"attention_norm": "ln_1", "feedforward_norm": "ln_2"}
_GPT2_MATRICES = {
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "feedforward.up": "mlp.c_fc",
    "feedforward.down": "mlp.c_proj",
}


def gpt2_rows(config: ModelConfig) -> Iterator[Row]:
    """All tensors of a GPT-2; its matrices are (in, out)."""
    yield "embedding.weight", ["transformer.wte.weight"], _SAME
    yield "position_embedding.weight", ["transformer.wpe.weight"], _SAME
    if not config.tie_embeddings:
        yield "head.weight", ["lm_head.weight"], _SAME
    norms, matrices = {"final_norm": "ln_f"}, {}
    for i in range(config.n_layers):
        norms |= {f"blocks.{i}.{ours}": f"h.{i}.{theirs}" for ours, theirs in _GPT2_NORMS.items()}
        matrices |= {f"blocks.{i}.{ours}": f"h.{i}.{theirs}" for ours, theirs in _GPT2_MATRICES.items()}
    for table, how in ((norms, _SAME), (matrices, _TRANSPOSED)):
        for ours, theirs in table.items():
            yield f"{ours}.weight", [f"transformer.{theirs}.weight"], how
            yield f"{ours}.bias", [f"transformer.{theirs}.bias"], _SAME


def filled_for_gpt2(state: State, config: ModelConfig) -> State:
    """The state with everything that a GPT-2 has: zeros for missing biases, a position table, scaled embeddings."""
    filled, width = dict(state), config.d_model
    if config.scale_embeddings:
        filled["embedding.weight"] = state["embedding.weight"] * math.sqrt(width)
    if config.positions == "sinusoidal":
        filled["position_embedding.weight"] = sinusoidal(config.context_length, width)
    elif config.positions != "learned":
        filled["position_embedding.weight"] = torch.zeros(config.context_length, width)
    for name, _, _ in gpt2_rows(config):
        if name.endswith(".bias") and name not in filled:
            filled[name] = torch.zeros(state[name.removesuffix("bias") + "weight"].shape[0])
    return filled


# ---- Llama, Mixtral, Qwen3, Qwen3-MoE --------------------------------------------------------------------------------


def llama_rows(config: ModelConfig) -> Iterator[Row]:
    """All tensors of a Llama or a related model; `qk_norm` and `n_experts` say which of the four it is."""
    yield "embedding.weight", ["model.embed_tokens.weight"], _SAME
    yield "final_norm.weight", ["model.norm.weight"], _SAME
    if not config.tie_embeddings:
        yield "head.weight", ["lm_head.weight"], _SAME
    for i in range(config.n_layers):
        yield from _llama_block(config, i, f"blocks.{i}", f"model.layers.{i}")


def _llama_block(config: ModelConfig, layer: int, ours: str, theirs: str) -> Iterator[Row]:
    H, Hkv, D = config.n_heads, config.kv_heads, config.d_head
    apart = lambda qkv: [part.clone() for part in qkv.split((H * D, Hkv * D, Hkv * D))]  # noqa: E731
    yield f"{ours}.attention_norm.weight", [f"{theirs}.input_layernorm.weight"], _SAME
    yield f"{ours}.feedforward_norm.weight", [f"{theirs}.post_attention_layernorm.weight"], _SAME
    for kind in _kinds(config.qkv_bias):
        parts = [f"{theirs}.self_attn.{part}_proj.{kind}" for part in "qkv"]
        yield f"{ours}.attention.qkv.{kind}", parts, How(apart, torch.cat)
    for kind in _kinds(config.attention_output_bias):
        yield f"{ours}.attention.out.{kind}", [f"{theirs}.self_attn.o_proj.{kind}"], _SAME
    for part in "qk" if config.qk_norm else "":
        yield f"{ours}.attention.{part}_norm.weight", [f"{theirs}.self_attn.{part}_norm.weight"], _SAME
    if not config.has_experts(layer):
        for part in ("gate", "up", "down"):
            for kind in _kinds(config.feedforward_bias):
                yield f"{ours}.feedforward.{part}.{kind}", [f"{theirs}.mlp.{part}_proj.{kind}"], _SAME
        return
    qwen = config.qk_norm
    mixture = f"{theirs}.{'mlp' if qwen else 'block_sparse_moe'}"
    yield f"{ours}.feedforward.router.weight", [f"{mixture}.gate.weight"], _SAME
    for part, name in zip(
        ("gate", "up", "down"), ("gate_proj", "up_proj", "down_proj") if qwen else ("w1", "w3", "w2")
    ):
        experts = [f"{mixture}.experts.{expert}.{name}.weight" for expert in range(config.n_experts)]
        yield f"{ours}.feedforward.{part}", experts, _STACKED


def _kinds(bias: bool) -> tuple[str, ...]:
    return ("weight", "bias") if bias else ("weight",)
