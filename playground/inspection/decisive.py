"""The decisive head: the one without which the model's next guess falls furthest, found in a single pass."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .look import Look

MOST_NUMBERS = 4_000_000
"""Numbers that a step of the pass over all variants may hold: some hundred tokens of our own models."""


@dataclass(frozen=True)
class Decisive:
    """What becomes of the likeliest next token when one head adds nothing."""

    layer: int
    head: int
    token: int
    """The likeliest next token."""
    before: float
    """Its probability."""
    after: float
    """The same without the head."""
    instead: int
    """The likeliest next token then."""
    probability: float
    """Its probability then."""


@torch.no_grad()
def decisive(look: Look) -> Decisive | None:
    """Switch each head off, one per row of a batch, and find where the last token's guess falls most.

    None where the model is too large for that in passing.
    """
    config = look.config
    H, heads = config.n_heads, config.n_layers * config.n_heads
    held = heads * max(look.length * max(4 * config.d_model, look.length * H), config.vocab_size)
    if held > MOST_NUMBERS:
        return None
    rows = torch.arange(H)

    def without(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        if name != "z":
            return x
        x = x.clone()  # (L·H, T, H, D): row l·H + h does without head h of layer l
        x[layer * H + rows, :, rows] = 0.0
        return x

    ids = torch.tensor([look.ids], device=look.trace["logits"].device)
    usual = look.trace["logits"][0, -1].double().softmax(dim=-1)
    broken = look.model(ids.expand(heads, -1), tap=without, last_only=True).logits[:, -1].double().softmax(dim=-1)
    token = int(usual.argmax())
    worst = int(broken[:, token].argmin())
    instead = int(broken[worst].argmax())
    before, after, then = usual[token], broken[worst, token], broken[worst, instead]
    return Decisive(worst // H, worst % H, token, float(before), float(after), instead, float(then))
