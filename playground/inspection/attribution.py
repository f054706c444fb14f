"""Direct logit attribution: one logit, taken apart into what embedding, heads and feed-forward layers wrote.

The residual stream is a sum, and once every norm on the way is frozen at the scale it had in this forward pass, the
way from each summand to the logit is linear: the parts add up to the logit itself, biases included.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ..model import Transformer
from ..model.trace import Trace


@dataclass(frozen=True)
class Part:
    """One summand of a logit."""

    kind: str
    """embedding, position, head, attention bias, feed-forward, … norm bias, or output bias."""
    value: float
    """What it adds to the logit."""
    layer: int | None = None
    """From 0; None for what belongs to the whole model."""
    head: int | None = None
    """From 0; only where kind is head."""


@dataclass(frozen=True)
class Attribution:
    """Where one logit (or the difference of two) comes from."""

    token: int
    against: int | None
    position: int
    parts: tuple[Part, ...]
    """Every summand, in the order in which a token meets them."""
    logit: float
    """What the model itself computed: the logit of `token`, minus that of `against` if there is one."""

    @property
    def total(self) -> float:
        """Sum of all parts."""
        return sum(part.value for part in self.parts)

    @property
    def difference(self) -> float:
        """How far the sum is from the model's own number: rounding, and nothing else."""
        return self.total - self.logit

    def by_layer(self, n_layers: int, n_heads: int) -> torch.Tensor:
        """(n_layers, n_heads + 1): each layer's heads, then its feed-forward layer."""
        table = torch.zeros(n_layers, n_heads + 1)
        for part in self.parts:
            if part.kind in ("head", "feed-forward"):
                table[part.layer, n_heads if part.head is None else part.head] = part.value
        return table


@torch.no_grad()
def attribute(model: Transformer, trace: Trace, position: int, token: int, against: int | None = None) -> Attribution:
    """Take apart the logit of `token` after `position` of a traced prompt (B = 1), or its lead over that of `against`.

    A difference is often the better question: adding one number to all logits changes no probability, so a part that
    raises every logit alike says nothing. The trace needs embed, positions, z, attn_out, ff_out and logits. Sums are
    made in float64. Follows Elhage et al. 2021, "A mathematical framework for transformer circuits".
    """
    config, T = model.config, trace["logits"].shape[1]
    if not 0 <= position < T:
        raise ValueError(f"the prompt has {T} tokens: position {position} is not among them")
    for asked in (token, against):
        if asked is not None and not 0 <= asked < config.vocab_size:
            raise ValueError(f"the model knows {config.vocab_size} tokens: {asked} is not among them")

    def at(name: str, layer: int | None = None) -> torch.Tensor:
        return trace[name, layer][0, position].double()

    written: list[tuple[str, int | None, int | None]] = [("embedding", None, None)]
    vectors = at("embed")[None]  # (parts so far, d): they sum to the residual stream
    if ("positions", None) in trace:
        written.append(("position", None, None))
        vectors = torch.cat((vectors, trace["positions"][position].double()[None]))
    post = config.norm_placement == "post"
    for layer, block in enumerate(model.blocks):
        heads = _head_outputs(block.attention.out, at("z", layer))  # (H, d)
        written += [("head", layer, head) for head in range(config.n_heads)]
        vectors = torch.cat((vectors, heads))
        if block.attention.out.bias is not None:
            written.append(("attention bias", layer, None))
            vectors = torch.cat((vectors, block.attention.out.bias.double()[None]))
        if post:
            written, vectors = _through(block.attention_norm, written, vectors, "attention norm bias", layer)
        written.append(("feed-forward", layer, None))
        vectors = torch.cat((vectors, at("ff_out", layer)[None]))
        if post:
            written, vectors = _through(block.feedforward_norm, written, vectors, "feed-forward norm bias", layer)
    written, vectors = _through(model.final_norm, written, vectors, "final norm bias", None)

    direction = model.head.weight[token].double()
    bias = None if model.head.bias is None else model.head.bias[token].double()
    logit = at("logits")[token]
    if against is not None:
        direction = direction - model.head.weight[against].double()
        bias = None if bias is None else bias - model.head.bias[against].double()
        logit = logit - at("logits")[against]
    values = (vectors @ direction).tolist()
    parts = [Part(kind, value, layer, head) for (kind, layer, head), value in zip(written, values)]
    if bias is not None:
        parts.append(Part("output bias", bias.item()))
    return Attribution(token, against, position, tuple(parts), logit.item())


def _head_outputs(out: nn.Linear, z: torch.Tensor) -> torch.Tensor:
    """What each head writes into the residual stream (H, d): its blend z (H, D) through its own columns of W_O."""
    columns = out.weight.double().unflatten(1, z.shape)  # (d, H, D)
    return torch.einsum("hk,dhk->hd", z, columns)


def _through(
    norm: nn.Module, written: list, vectors: torch.Tensor, bias_name: str, layer: int | None
) -> tuple[list, torch.Tensor]:
    """The parts (P, d) after a norm whose scale stays what the whole stream made it; its bias is one part more."""
    stream = vectors.sum(dim=0)
    if isinstance(norm, nn.LayerNorm):
        vectors = vectors - vectors.mean(dim=-1, keepdim=True)  # taking off the mean is linear
        scale = torch.rsqrt(stream.var(correction=0) + norm.eps)
    else:
        scale = torch.rsqrt(stream.square().mean() + norm.eps)
    vectors = vectors * scale * norm.weight.double()
    if getattr(norm, "bias", None) is not None:
        written, vectors = [*written, (bias_name, layer, None)], torch.cat((vectors, norm.bias.double()[None]))
    return written, vectors
