"""Matched pairs: the chosen widths, and what the two models cost."""

from __future__ import annotations

from ..model import ModelConfig
from ..model.matched_pair import COUNTS, MatchedPair


def matched_in_words(pair: MatchedPair) -> str:
    """The chosen widths, and what the two models cost."""
    what = COUNTS[pair.equal][0]
    dense, moe = pair.counted
    apart = "exactly equal" if dense == moe else f"{100 * abs(pair.difference):.2g} % apart"
    return (
        f"Dense: one MLP of width {pair.dense.ff_width:,}. "
        f"MoE: {pair.moe.n_experts} experts of width {pair.moe.expert_width:,}, {pair.moe.experts_per_token} per token"
        f"{', and a shared one' if pair.moe.shared_expert else ''}. "
        f"{what[0].upper()}{what[1:]}: {dense:,} and {moe:,}, {apart}."
    )


def cost_headline(dense: ModelConfig, moe: ModelConfig) -> str:
    """Size and arithmetic of the MoE model, as multiples of the dense one's."""
    work = f"{moe.flops_per_token() / dense.flops_per_token():.1f}"
    arithmetic = "the same arithmetic" if work == "1.0" else f"{work} times the arithmetic"
    return f"MoE: {moe.n_parameters / dense.n_parameters:.1f} times the parameters, {arithmetic} per token."
