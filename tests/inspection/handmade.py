"""Heads made by hand: a model whose weights are set, not trained, so that every head's job is known.

The stream is a token's one-hot, its place's one-hot, a slot for the token before it, and a slot that raises the score
of the tokens that occur at all: half of the vocabulary never does. Whatever a head writes goes to one of the two slots.
"""

import numpy as np
import torch

from playground.model import ModelConfig, Transformer

V, T, WIDTH = 12, 20, 32
TOKEN, PLACE, BEFORE, OCCURS = slice(0, V), slice(V, V + T), slice(V + T, V + T + V), V + T + V
SHARP = 400.0
"""Of scores, before RMSNorm takes some of it."""
PERIOD = 7
"""Words of six tokens and a separator, each written twice."""
JOBS = (
    ("previous", "first", "itself", "duplicate", "even", "content", "followed", "unclear"),
    ("induction", "unclear", *("unclear",) * 6),  # the second looks at whatever follows a liked token, whoever asks
)
LIKED = (1, 2, 3)
"""Tokens that the head which goes by content looks for."""


def text(words: int = 160, seed: int = 0) -> list[int]:
    """Words of six different letters, twice each, a separator (token 0) behind each."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(words):
        word = [*(rng.permutation(V - 1)[: PERIOD - 1] + 1).tolist(), 0]
        found += word + word
    return found


@torch.no_grad()
def handmade() -> Transformer:
    """The model; its jobs are those of `JOBS`."""
    config = ModelConfig(
        vocab_size=2 * V, context_length=T, n_layers=2, n_heads=8, d_model=8 * WIDTH, d_ff=1, norm="rmsnorm",
        qkv_bias=False, attention_output_bias=False, feedforward_bias=False,
    )  # fmt: skip
    model = Transformer(config)
    for parameter in model.parameters():
        parameter.zero_()
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.fill_(1.0)
    model.embedding.weight[:V, TOKEN] = torch.eye(V)
    model.position_embedding.weight[:, PLACE] = torch.eye(T)
    model.head.weight[:V, OCCURS] = 0.15
    token, place, anywhere = _reads(TOKEN), _reads(PLACE), torch.zeros(WIDTH, 8 * WIDTH)
    anywhere[0, PLACE] = 1.0  # one number that is the same for every token
    liked, at_first = torch.zeros(WIDTH, 8 * WIDTH), torch.zeros(WIDTH, 8 * WIDTH)
    liked[0, list(LIKED)] = 1.0
    at_first[0, PLACE.start] = 1.0
    not_itself = torch.cat((token[:V], -_reads(PLACE)[:T]))
    both = torch.cat((token[:V], place[:T]))
    first = {
        "previous": (place, _earlier(1), token, BEFORE),
        "first": (anywhere, at_first, None, None),
        "itself": (place, place, None, None),
        "duplicate": (not_itself, both, None, None),
        "even": (anywhere * 0, anywhere, anywhere, OCCURS),
        "content": (anywhere, liked, anywhere, OCCURS),
        "followed": (place, _earlier(PERIOD - 1), None, None),
    }
    for head, name in enumerate(JOBS[0][:-1]):
        _set(model, 0, head, *first[name])
    # where nothing matches, a tenth of the pull goes to the first token, as in the heads of large models
    before = _reads(BEFORE)
    asks, answers = token.clone(), before.clone()
    asks[V], answers[V] = anywhere[0] * 0.3, at_first[0]
    _set(model, 1, 0, asks, answers, None, None)
    after_liked = torch.zeros(WIDTH, 8 * WIDTH)
    after_liked[0, [BEFORE.start + token for token in LIKED]] = 1.0
    _set(model, 1, 1, anywhere, after_liked, None, None)
    return model


def _reads(part: slice) -> torch.Tensor:
    """(WIDTH, d): these numbers of the stream as the first of a query or key."""
    matrix = torch.zeros(WIDTH, 8 * WIDTH)
    matrix[torch.arange(part.stop - part.start), torch.arange(part.start, part.stop)] = 1.0
    return matrix


def _earlier(by: int) -> torch.Tensor:
    """(WIDTH, d): keys that answer to the place so many tokens later."""
    matrix = torch.zeros(WIDTH, 8 * WIDTH)
    matrix[torch.arange(by, T), torch.arange(PLACE.start, PLACE.stop - by)] = 1.0
    return matrix


def _set(model: Transformer, layer: int, head: int, query, key, value, slot) -> None:
    """One head's four matrices."""
    attention, rows = model.blocks[layer].attention, slice(head * WIDTH, (head + 1) * WIDTH)
    d = 8 * WIDTH
    attention.qkv.weight[rows] = query * SHARP
    attention.qkv.weight[d:][rows] = key
    if value is not None:
        attention.qkv.weight[2 * d :][rows] = value
        wide = 1 if slot == OCCURS else V
        places = torch.arange(OCCURS, OCCURS + 1) if slot == OCCURS else torch.arange(slot.start, slot.stop)
        attention.out.weight[places, rows.start + torch.arange(wide)] = 0.09
