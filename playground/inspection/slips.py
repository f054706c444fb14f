"""Textbook slips: what teaching texts on the transformer say by mistake, and what is true, with numbers computed here.

Each slip has a function that computes its numbers and a sentence with places for them; `told(name)` joins the two. Five
texts are meant, S1 to S5, whose models the presets of these names build.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ..data.sentences import SENTENCES
from ..model import PRESETS, Pass, Transformer

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"

S3_BATCH, S3_LENGTH = 32, 512
"""The batch whose memory S3 counts."""
S5_BATCH, S5_EPOCHS = 8, 150


@dataclass(frozen=True)
class Slip:
    """One mistake, in our own words."""

    source: str
    says: str
    numbers: Callable[[], dict[str, Any]]
    truth: str
    """A sentence with a place in braces for each number."""


@lru_cache(maxsize=64)
def told(name: str) -> tuple[str, str] | None:
    """(what the text says, what is true) of a slip; None where the model that its numbers need is not here."""
    slip = SLIPS[name]
    try:
        truth = slip.truth.format(**slip.numbers())
        return f"{slip.source} {slip.says}.", re.sub(r"(?<=[ (])-(?=\d)", "−", truth)  # a proper minus sign
    except (OSError, ValueError):  # the shipped models are not everywhere where the program is
        return None


def equal_counts() -> dict[str, Any]:
    """S1's model with and without the biases that its second attention adds."""
    config = PRESETS["s1"].config
    more = config.replace(qkv_bias=True).n_parameters - config.n_parameters
    return {"per_layer": more // config.n_layers, "d": config.d_model, "layers": config.n_layers, "more": more}


def mask_unsqueezed_twice(T: int = 8) -> dict[str, Any]:
    """What becomes of scores (B, H, T, T) under a mask (T, 1, 1, T), for a batch of 1 and of 4."""
    mask = torch.ones(T, T, dtype=torch.bool).tril()[:, None, None, :]
    made = torch.zeros(1, 2, T, T).masked_fill(~mask, -math.inf)
    try:
        torch.zeros(4, 2, T, T).masked_fill(~mask, -math.inf)
        four = "is taken, too"
    except RuntimeError:
        four = "fails"
    return {"T": T, "batch": made.shape[0], "four": four}


def norm_after_the_sum() -> dict[str, Any]:
    """Length of a vector of S3's width after each kind of block, for sublayers that add vectors of length √d."""
    config = PRESETS["s3"].config
    d, rng = config.d_model, torch.Generator().manual_seed(0)
    pre = post = torch.randn(d, generator=rng)
    for _ in range(2 * config.n_layers):
        added = torch.randn(d, generator=rng)
        pre, post = pre + added, F.layer_norm(post + added, (d,))
    return {"layers": config.n_layers, "root": math.sqrt(d), "post": post.norm().item(), "pre": pre.norm().item()}


def gpt2_sized() -> dict[str, Any]:
    """Parameters of S3's model, and of its blocks, in millions."""
    config = PRESETS["s3"].config
    parts = config.parameters_by_component()
    norms = parts["norms"] * 2 * config.n_layers // (2 * config.n_layers + 1)  # the last one stands after the blocks
    blocks = parts["attention"] + parts["feed-forward"] + norms
    return {"all": config.n_parameters / 1e6, "blocks": blocks / 1e6}


def attention_and_feed_forward() -> dict[str, Any]:
    """What S3 compares (one sequence's score products, one token's feed-forward weights), and both per token."""
    config, T = PRESETS["s3"].config, S3_LENGTH
    d = config.d_model
    attention, feedforward = 4 * T * d, 4 * d * config.ff_width
    return {
        "sequence": T * T * d / 1e6,
        "token": d * config.ff_width / 1e6,
        "attention": attention / 1e6,
        "feedforward": feedforward / 1e6,
        "times": feedforward / attention,
    }


def numbers_for_bytes() -> dict[str, Any]:
    """Q, K and V of one block of S3 for its batch, and a block with scores and hidden layer, in MB of float32."""
    config, B, T = PRESETS["s3"].config, S3_BATCH, S3_LENGTH
    qkv = 3 * B * T * config.d_model
    rest = B * config.n_heads * T * T + B * T * config.ff_width
    return {
        "numbers": qkv / 1e6,
        "qkv": 4 * qkv / 1e6,
        "mixed": (qkv + 4 * rest) / 1e6,
        "block": 4 * (qkv + rest) / 1e6,
    }


def padding_counted() -> dict[str, Any]:
    """Share of the targets that is padding where our twenty sentences are padded to the longest."""
    targets = [len(sentence.split()) - 1 for sentence in SENTENCES]
    cells = len(targets) * max(targets)
    return {"share": 1 - sum(targets) / cells, "padding": cells - sum(targets), "cells": cells}


def words_counted() -> dict[str, Any]:
    """S5's parameters with the words that it names and with those that it has."""
    config = PRESETS["s5"].config
    return {"n": config.n_parameters, "words": config.vocab_size, "fewer": config.replace(vocab_size=24).n_parameters}


def loops_counted() -> dict[str, Any]:
    """Batches in S5's training."""
    per_epoch = math.ceil(len(SENTENCES) / S5_BATCH)
    return {"sentences": len(SENTENCES), "batch": S5_BATCH, "per_epoch": per_epoch, "loops": S5_EPOCHS * per_epoch}


def alike_words() -> dict[str, Any]:
    """Cosines of two pairs of words before and after training on our sentences, and how far use explains cosines.

    `r` is the correlation, over all pairs of words, of the cosine of their vectors with the cosine of their
    neighbourhoods (how often each word stands just before and just after them); `r0` the same before training.
    """
    from ..storage import load

    shipped = load(CHECKPOINTS / "sentences")
    vocabulary = shipped.tokenizer
    before = Transformer(shipped.config, seed=shipped.about["training"]["seed"]).embedding.weight.detach().numpy()
    after = shipped.model.embedding.weight.detach().float().numpy()
    words = sorted({word for sentence in SENTENCES for word in sentence.split() if word.isalpha()})
    ids = [vocabulary.encode(word)[0] for word in words]
    use = _cosines(_neighbourhoods(words))
    upper = np.triu_indices(len(words), 1)
    r0, r = (np.corrcoef(_cosines(each[ids])[upper], use[upper])[0, 1] for each in (before, after))

    def pair(vectors: np.ndarray, one: str, other: str) -> float:
        return _cosines(vectors[[vocabulary.encode(one)[0], vocabulary.encode(other)[0]]])[0, 1]

    return {
        "r0": r0, "r": r,
        "mat0": pair(before, "mat", "rug"), "mat": pair(after, "mat", "rug"),
        "cat0": pair(before, "cat", "dog"), "cat": pair(after, "cat", "dog"),
        "verdict": "so use shows in the vectors" if r > r0 + 0.2 else "so use hardly shows in the vectors",
    }  # fmt: skip


def _neighbourhoods(words: list[str]) -> np.ndarray:
    """(words, 2 · vocabulary): how often each word stands just before and just after each of these."""
    known = sorted({word for sentence in SENTENCES for word in sentence.split()})
    counts = np.zeros((len(words), 2, len(known)))
    for sentence in SENTENCES:
        text = sentence.split()
        for place, word in enumerate(text):
            if word in words:
                if place:
                    counts[words.index(word), 0, known.index(text[place - 1])] += 1
                if place + 1 < len(text):
                    counts[words.index(word), 1, known.index(text[place + 1])] += 1
    return counts.reshape(len(words), -1)


def _cosines(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit @ unit.T


def dropout_left_on() -> dict[str, Any]:
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


SLIPS: dict[str, Slip] = {
    "counts": Slip(
        "S1",
        "says that a list of heads and one reshaped projection have the same number of parameters",
        equal_counts,
        "Its reshaped version adds biases to Q, K and V: 3 · {d} = {per_layer:,} more per layer, {more:,} in {layers} "
        "layers. With equal biases counts and outputs are equal.",
    ),
    "mask": Slip(
        "S2",
        "unsqueezes a (T, T) mask twice, so that it fits batch and heads",
        mask_unsqueezed_twice,
        "Unsqueezed behind its rows a ({T}, {T}) mask becomes ({T}, 1, 1, {T}): a batch of 1 silently turns into one "
        "of "
        "{batch}, a batch of 4 {four}. As it is, ({T}, {T}) fits every batch and head.",
    ),
    "placement": Slip(
        "S3",
        "calls LN(x + f(x)) “Pre-LN”",
        norm_after_the_sum,
        "That is post-norm: pre-norm is x + f(LN(x)). After {layers} blocks of sublayers that add random vectors a "
        "post-norm vector has length {post:.1f} (√d = {root:.1f}, whatever was added), a pre-norm one {pre:.1f}.",
    ),
    "size": Slip(
        "S3",
        "says that its model has about 117 M parameters, its blocks about 70 M",
        gpt2_sized,
        "It has {all:.1f} M, its blocks {blocks:.1f} M: its output layer is not tied to the embedding, and each of "
        "12 blocks "
        "has 12 · d² weights and some biases.",
    ),
    "compute": Slip(
        "S3",
        "says that attention costs 201 M operations and the feed-forward layer 2.4 M",
        attention_and_feed_forward,
        "The first is a whole sequence's scores (512² · 768 = {sequence:.0f} M products), the second one token's first "
        "matrix ({token:.1f} M). Per token, scores and blend take {attention:.1f} M operations, the feed-forward layer "
        "{feedforward:.1f} M: {times:.0f} times as many.",
    ),
    "bytes": Slip(
        "S3",
        "says that Q, K and V of one block take 37.7 MB, a block about 640 MB",
        numbers_for_bytes,
        "{numbers:.1f} M is how many numbers they are; in 32 bits that is {qkv:.0f} MB. With scores and hidden layer "
        "a block "
        "keeps {block:.0f} MB, not the {mixed:.0f} that come of adding numbers to bytes.",
    ),
    "padding": Slip(
        "S5",
        "pads short sentences with word 0 and counts those targets in the loss",
        padding_counted,
        "Then a model is trained to say word 0 after every short sentence: in our twenty sentences padding would be "
        "{padding} of {cells} targets ({share:.0%}). Padding belongs left out of the loss.",
    ),
    "words": Slip(
        "S5",
        "says that its sentences have 24 different words",
        words_counted,
        "They have {words}: with 24 its dense model would have {fewer:,} parameters, it has {n:,}.",
    ),
    "loops": Slip(
        "S5",
        "says that its training is 750 loops",
        loops_counted,
        "{sentences} sentences in batches of {batch} are {per_epoch} batches an epoch, and 150 epochs {loops} loops.",
    ),
    "alike": Slip(
        "S5",
        "says that words used alike end up with vectors that are alike",
        alike_words,
        "In its own code the cosines stay where they began. Ours, on twenty sentences: mat and rug go from "
        "{mat0:.2f} to {mat:.2f}, cat and dog from {cat0:.2f} to {cat:.2f}. Over all pairs the cosine follows common "
        "neighbours with a "
        "correlation of {r:.2f} ({r0:.2f} before training): {verdict}.",
    ),
    "dropout": Slip(
        "S2",
        "judges its model on held-out text with dropout still on",
        dropout_left_on,
        "The same weights then look worse than they are: our prose model loses {on:.2f} nats with its dropout of "
        "{p:g}, "
        "{off:.2f} without. A held-out text must also not repeat the training text, as S2's does.",
    ),
}
"""By name."""
