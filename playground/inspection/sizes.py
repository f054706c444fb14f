"""Sizes: how large a model's parts are, what a training step keeps in memory for them, and what they compute per token.

B = rows of a batch, T = tokens, d = d_model, H = query heads, Hkv = key/value heads, D = d_head, V = vocabulary.
"""

from __future__ import annotations

from ..model import PRESETS, ModelConfig

COMPARED: dict[str, ModelConfig] = {
    "Word walkthrough": PRESETS["s5"],
    "Word walkthrough, eight experts": PRESETS["s5-moe"],
    "Post-norm GPT": PRESETS["s3"],
    "GPT-2 small": PRESETS["gpt2-small"],
}
"""Models from the teaching texts, and the one that most of them mean."""


def activations(config: ModelConfig, batch: int, length: int) -> dict[str, int]:
    """How many numbers one block keeps for the backward pass, by part; only the largest parts. In a mixture, the block
    is one with experts: there, a token has hidden numbers for each expert that it visits.

    Queries, keys and values; the scores of every head, which plain attention holds and fused kernels (Dao et al. 2022)
    make again; the weighted average; and the MLP's hidden numbers.
    """
    rows, visited = batch * length, config.experts_per_token + config.shared_expert
    hidden = visited * config.expert_width if config.n_moe_layers else config.ff_width
    return {
        "queries, keys, values": rows * config.d_head * (config.n_heads + 2 * config.kv_heads),
        "scores of all heads": rows * length * config.n_heads,
        "weighted averages": rows * config.n_heads * config.d_head,
        "hidden layer": rows * hidden,
    }


def compute(config: ModelConfig, length: int) -> dict[str, int]:
    """Operations for one token that attends to `length` keys, by part; they sum to `config.flops_per_token(length)`."""
    d, H, Hkv, D = config.d_model, config.n_heads, config.kv_heads, config.d_head
    projections = config.n_layers * 2 * d * D * (2 * H + 2 * Hkv)
    scores, output = config.n_layers * 4 * length * H * D, 2 * d * config.vocab_size
    name = "experts used, and routers" if config.n_moe_layers == config.n_layers else "MLP"
    return {
        "attention: project in and out": projections,
        "attention: scores and weighted average": scores,
        name: config.flops_per_token(length) - projections - scores - output,
        "output layer": output,
    }
