"""Matched pairs: the chosen widths, and what the two models cost."""

from __future__ import annotations

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


def sum_per_layer(pair: MatchedPair) -> list[tuple[str, str, int, int]]:
    """Weights in one block's MLP or experts: (what, how it is counted, in all, used by one token)."""
    d, matrices = pair.moe.d_model, 3 if pair.moe.activation == "swiglu" else 2
    f, E, K = pair.moe.expert_width, pair.moe.n_experts, pair.moe.experts_per_token
    shared = int(pair.moe.shared_expert)
    dense = matrices * d * pair.dense.ff_width
    one = matrices * d * f
    everyone = f" + {shared} shared" if shared else ""
    return [
        ("Dense", f"{matrices} × {d} × {pair.dense.ff_width:,}", dense, dense),
        ("Experts", f"{E}{everyone} × {matrices} × {d} × {f:,}, {K}{everyone} used",
         (E + shared) * one, (K + shared) * one),
        ("Router", f"{d} × {E}", d * E, d * E),
    ]  # fmt: skip
