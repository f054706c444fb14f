"""Direct effects: how much of a difference of two logits a part writes straight into the last residual stream.

The last norm's divisor is kept from the run, so direct effects add up exactly (logit attribution, Elhage et al.
2021). d = d_model, H = heads, D = d_head.
"""

from __future__ import annotations

import torch

from ..model import Transformer


@torch.no_grad()
def readout(model: Transformer, stream: torch.Tensor, answer: int, foil: int | None = None) -> torch.Tensor:
    """Reader (d,), so that the logit difference is stream · reader + a constant, for this last stream (d,).

    Without a foil, the difference is from the mean of all logits. Raises ValueError for a post-norm model, whose later
    norms rescale what a part has written.
    """
    norm, stream = model.final_norm, stream.float()
    if model.config.norm_placement == "post":
        raise ValueError("In a post-norm model every layer rescales the stream, so no effect is direct. Choose total")
    weights = model.head.weight
    reader = (weights[answer] - (weights.mean(0) if foil is None else weights[foil])).float() * norm.weight
    if model.config.norm == "rmsnorm":
        return reader * (stream.square().mean() + norm.eps).rsqrt()
    reader = reader * (stream.var(unbiased=False) + norm.eps).rsqrt()
    return reader - reader.mean()  # the mean is taken off the stream first


def written_by_head(model: Transformer, layer: int, z: torch.Tensor) -> torch.Tensor:
    """What each head adds to the residual stream, (…, H, d) from z (…, H, D)."""
    columns = model.blocks[layer].attention.out.weight.unflatten(1, (-1, model.config.d_head))  # (d, H, D)
    return torch.einsum("...hk,dhk->...hd", z, columns)
