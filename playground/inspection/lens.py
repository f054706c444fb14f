"""The logit lens: what the model would answer if it stopped after each layer.

S = stages (the embeddings, then one after every layer), T = tokens, V = vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..model import Transformer
from ..model.trace import Trace


@dataclass(frozen=True)
class LogitLens:
    """What each stage of the residual stream says about the next token, read through the model's own last two steps."""

    best: torch.Tensor
    """(S, T) the likeliest next token; of the last stage, the model's own answer."""
    probabilities: torch.Tensor
    """(S, T) how probable each stage finds the model's own answer."""
    ranks: torch.Tensor
    """(S, T) that answer's place in each stage's order, 1 for the likeliest."""


@torch.no_grad()
def logit_lens(model: Transformer, trace: Trace) -> LogitLens:
    """Read each stage of a trace of one prompt (B = 1) with the final norm and the output layer.

    The idea is nostalgebraist's "logit lens" (2020). The trace needs `resid_pre`, `resid_post` and `logits`. The result
    is on the CPU.
    """
    streams = [trace["resid_pre", 0][0], *(trace["resid_post", layer][0] for layer in range(model.config.n_layers))]
    best, chances, ranks = [], [], []
    answers = trace["logits"][0].argmax(dim=-1, keepdim=True).cpu()
    for stream in streams:  # one stage at a time: (T, V) of a large vocabulary is large enough
        logits = model.head(model.final_norm(stream)).float().cpu()  # (T, V)
        best.append(logits.argmax(dim=-1))
        chances.append(logits.softmax(dim=-1).gather(1, answers)[:, 0])
        ranks.append(1 + (logits > logits.gather(1, answers)).sum(dim=-1))
    return LogitLens(torch.stack(best), torch.stack(chances), torch.stack(ranks))
