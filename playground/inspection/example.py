"""A worked example small enough to check with pencil and paper: 3 tokens, 4 numbers each, one head of width 2.

Its numbers are those of a well-known NumPy notebook on causal attention. It is a real Transformer: its embedding is the
example's X, it normalises after its sublayers only, so attention reads X as it is, and its second head and its
feed-forward layer are zero.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch

from ..data.tokenizers import WordTokenizer
from ..model import ModelConfig, Transformer
from ..training.history import History

if TYPE_CHECKING:
    from ..storage import Checkpoint

PROMPT = "one two three"
X = ((0.1, 0.2, 0.3, 0.4), (0.5, 0.4, 0.3, 0.2), (0.0, 0.1, 0.0, 0.1))
W_Q = ((0.2, -0.1), (0.0, 0.1), (0.1, 0.2), (-0.1, 0.0))
W_K = ((0.1, 0.1), (0.0, -0.1), (0.2, 0.0), (0.0, 0.2))
W_V = ((0.1, 0.0), (-0.1, 0.1), (0.2, -0.1), (0.0, 0.2))


@lru_cache(maxsize=1)
def worked_example() -> Checkpoint:
    """The example as a checkpoint in float64, so that its numbers come out to all their digits."""
    from ..storage import Checkpoint

    config = ModelConfig(
        vocab_size=4,
        context_length=3,
        n_layers=1,
        d_model=4,
        n_heads=2,
        d_ff=4,
        positions="none",
        norm_placement="post",
        qkv_bias=False,
        attention_output_bias=False,
        feedforward_bias=False,
        tie_embeddings=True,
    )
    model = Transformer(config).double()
    with torch.no_grad():
        for parameter in model.blocks[0].parameters():
            if parameter.ndim == 2:
                parameter.zero_()
        model.embedding.weight.copy_(torch.tensor([(0.0,) * 4, *X], dtype=torch.float64))
        qkv = model.blocks[0].attention.qkv.weight.view(3, 2, 2, 4)  # q, k, v; head; row; column
        for matrix, weight in zip(qkv, (W_Q, W_K, W_V)):
            matrix[0] = torch.tensor(weight, dtype=torch.float64).T
        model.blocks[0].attention.out.weight.copy_(torch.eye(4))
    return Checkpoint(model, WordTokenizer(PROMPT.split()), History(), "Worked example", {"prompt": PROMPT})
