"""The logit lens: what every layer would already answer, had the model stopped there.

S = stages (the embeddings, then one after every layer), T = tokens, V = vocabulary, k = candidates kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..model import Transformer
from ..model.trace import Trace


@dataclass(frozen=True)
class LogitLens:
    """What each stage of the residual stream says about the next token, read through the model's own last two steps."""

    candidates: torch.Tensor
    """(S, T, k) likeliest next tokens, best first."""
    probabilities: torch.Tensor
    """(S, T, k) their probabilities."""
    followed: torch.Tensor
    """(T,) the tokens that are followed through the stages: the model's own final choice unless others were named."""
    followed_probabilities: torch.Tensor
    """(S, T) how probable each stage finds them."""
    followed_ranks: torch.Tensor
    """(S, T) their place in each stage's order, 1 for the likeliest."""
    norms: torch.Tensor
    """(S, T) length of the residual stream, which the final norm takes away before the answer is read."""


@torch.no_grad()
def logit_lens(
    model: Transformer, trace: Trace, *, followed: torch.Tensor | None = None, candidates: int = 5
) -> LogitLens:
    """Read each stage of a trace of one prompt (B = 1) with the final norm and the output layer.

    The idea is nostalgebraist's "logit lens" (2020). The last stage is the model's own answer. `followed` (T,) names
    the tokens to follow instead of the model's final choices. The trace needs `resid_pre` and `resid_post`.
    """
    streams = [trace["resid_pre", 0][0], *(trace["resid_post", layer][0] for layer in range(model.config.n_layers))]
    if followed is None:
        followed = read(model, streams[-1]).argmax(dim=-1)
    k = min(candidates, model.config.vocab_size)
    tokens, chances, followed_chances, ranks = [], [], [], []
    for stream in streams:  # one stage at a time: (T, V) of a large vocabulary is large enough
        logits = read(model, stream)  # (T, V)
        probabilities = logits.softmax(dim=-1)
        best = probabilities.topk(k, dim=-1)
        tokens.append(best.indices)
        chances.append(best.values)
        followed_chances.append(probabilities.gather(1, followed[:, None])[:, 0])
        ranks.append(1 + (logits > logits.gather(1, followed[:, None])).sum(dim=-1))
    return LogitLens(
        candidates=torch.stack(tokens),
        probabilities=torch.stack(chances),
        followed=followed,
        followed_probabilities=torch.stack(followed_chances),
        followed_ranks=torch.stack(ranks),
        norms=torch.stack([stream.norm(dim=-1) for stream in streams]),
    )


def read(model: Transformer, stream: torch.Tensor) -> torch.Tensor:
    """Logits (T, V) that the model's final norm and output layer make of a residual stream (T, d)."""
    return model.head(model.final_norm(stream)).float()
