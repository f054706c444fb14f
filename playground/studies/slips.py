"""Textbook slips: the true numbers where teaching texts on the transformer are mistaken; `words/slips.py` tells them.

Five texts are meant, S1 to S5, whose models the presets of these names build.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import torch
import torch.nn.functional as F

from ..data.sentences import SENTENCES
from ..model import PRESETS, Pass, Transformer

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"

S3_BATCH, S3_LENGTH = 32, 512
"""The batch whose memory S3 counts."""


Numbers = Mapping[str, float]
"""Numbers of one slip, by the names that its sentence uses."""


def equal_counts() -> Numbers:
    """The textbook's model with and without the biases that its second attention adds."""
    config = PRESETS["s1"]
    more = config.replace(qkv_bias=True).n_parameters - config.n_parameters
    return {"per_layer": more // config.n_layers, "d": config.d_model, "layers": config.n_layers, "more": more}


def mask_unsqueezed_twice(T: int = 8) -> Numbers:
    """The batch size that results when a mask (T, 1, 1, T) is broadcast over scores (1, H, T, T)."""
    mask = torch.ones(T, T, dtype=torch.bool).tril()[:, None, None, :]
    made = torch.zeros(1, 2, T, T).masked_fill(~mask, -math.inf)
    return {"T": T, "batch": made.shape[0]}


def norm_after_the_sum() -> Numbers:
    """Length of a vector after pre-norm and post-norm blocks of S3's width, if sublayers add vectors of length √d."""
    config = PRESETS["s3"]
    d, rng = config.d_model, torch.Generator().manual_seed(0)
    pre = post = torch.randn(d, generator=rng)
    for _ in range(2 * config.n_layers):
        added = torch.randn(d, generator=rng)
        pre, post = pre + added, F.layer_norm(post + added, (d,))
    return {"layers": config.n_layers, "root": math.sqrt(d), "post": post.norm().item(), "pre": pre.norm().item()}


def gpt2_sized() -> Numbers:
    """Parameters of S3's model, and of its blocks, in millions."""
    config = PRESETS["s3"]
    parts = config.parameters_by_component()
    norms = parts["norms"] * 2 * config.n_layers // (2 * config.n_layers + 1)  # the last one comes after the blocks
    blocks = parts["attention"] + parts["feed-forward"] + norms
    return {"all": config.n_parameters / 1e6, "blocks": blocks / 1e6}


def attention_and_feed_forward() -> Numbers:
    """What S3 compares (one sequence's score products, one token's feed-forward weights), and both per token."""
    config, T = PRESETS["s3"], S3_LENGTH
    d = config.d_model
    attention, feedforward = 4 * T * d, 4 * d * config.ff_width
    return {
        "sequence": T * T * d / 1e6,
        "token": d * config.ff_width / 1e6,
        "attention": attention / 1e6,
        "feedforward": feedforward / 1e6,
        "times": feedforward / attention,
    }


def numbers_for_bytes() -> Numbers:
    """Q, K and V of one block of S3 for its batch, and a block with scores and hidden layer, in MB of float32."""
    config, B, T = PRESETS["s3"], S3_BATCH, S3_LENGTH
    qkv = 3 * B * T * config.d_model
    rest = B * config.n_heads * T * T + B * T * config.ff_width
    return {
        "numbers": qkv / 1e6,
        "qkv": 4 * qkv / 1e6,
        "mixed": (qkv + 4 * rest) / 1e6,
        "block": 4 * (qkv + rest) / 1e6,
    }


def padding_counted() -> Numbers:
    """Share of targets that are padding, once our twenty sentences are padded to the length of the longest."""
    targets = [len(sentence.split()) - 1 for sentence in SENTENCES]
    cells = len(targets) * max(targets)
    return {"share": 1 - sum(targets) / cells, "padding": cells - sum(targets), "cells": cells}


def alike_words() -> Numbers:
    """Cosines of two pairs of words before and after training on our sentences."""
    from ..storage import load

    shipped = load(CHECKPOINTS / "sentences")
    before = Transformer(shipped.config, seed=shipped.about["training"]["seed"]).embedding.weight.detach()
    after = shipped.model.embedding.weight.detach().float()

    def pair(vectors: torch.Tensor, *words: str) -> float:
        one, other = (vectors[shipped.tokenizer.encode(word)[0]] for word in words)
        return F.cosine_similarity(one, other, dim=0).item()

    return {
        "mat0": pair(before, "mat", "rug"), "mat": pair(after, "mat", "rug"),
        "cat0": pair(before, "cat", "dog"), "cat": pair(after, "cat", "dog"),
    }  # fmt: skip


def dropout_left_on() -> Numbers:
    """Loss of the shipped prose model on its held-out text, with the dropout it was trained with and without."""
    from ..data import corpus_from_text, read_file
    from ..storage import load
    from ..training import loss_of

    shipped = load(CHECKPOINTS / "prose")
    text = read_file(Path(__file__).resolve().parents[1] / "data" / "texts" / "lighthouse.txt")
    inputs, targets = corpus_from_text(text, shipped.tokenizer).windows("val", shipped.config.context_length, 16)
    with torch.no_grad():
        off = loss_of(shipped.model(inputs).logits, targets).item()
        on = loss_of(shipped.model(inputs, Pass(generator=torch.Generator().manual_seed(0))).logits, targets).item()
    return {"on": on, "off": off, "worse": on - off, "p": shipped.config.dropout}


SLIPS: dict[str, Callable[[], Numbers]] = {
    "counts": equal_counts,
    "mask": mask_unsqueezed_twice,
    "placement": norm_after_the_sum,
    "size": gpt2_sized,
    "compute": attention_and_feed_forward,
    "bytes": numbers_for_bytes,
    "padding": padding_counted,
    "alike": alike_words,
    "dropout": dropout_left_on,
}
"""Numbers of each slip, by name."""


@lru_cache(maxsize=len(SLIPS))
def slip_numbers(name: str) -> Numbers:
    """The numbers of a slip, worked out once.

    Raises OSError or ValueError where the shipped model that they need cannot be read, and tries again the next time.
    """
    return MappingProxyType(SLIPS[name]())
