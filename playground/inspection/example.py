"""Worked examples small enough to check with pencil and paper: 3 tokens, 4 numbers each, one head of width 2.

Both are real Transformers in float64. They normalise only after their sublayers, so that attention reads the embedding
unchanged; their second head is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from ..data.tokenizers import WordTokenizer
from ..model import ModelConfig, Transformer
from ..training.history import History

if TYPE_CHECKING:
    from ..storage import Checkpoint

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Example:
    """A model written by hand, and its prompt."""

    title: str
    """The word on its button."""
    prompt: str
    words: tuple[str, ...]
    """The vocabulary, without the unknown word."""
    embedding: Matrix
    """(words, 4); the unknown word's row is 0."""
    w_q: Matrix
    """(4, 2), like w_k and w_v: the matrices of head 0."""
    w_k: Matrix
    w_v: Matrix
    w_o: Matrix
    """(2, 4): maps the result of head 0 to what it writes."""
    up: Matrix = ((0.0,) * 4,) * 4
    """(neurons, 4)"""
    up_bias: Sequence[float] = (0.0,) * 4
    down: Matrix = ((0.0,) * 4,) * 4
    """(neurons, 4): what each neuron writes."""
    head: Matrix | None = None
    """(words, 4); None to use the embedding."""


EXAMPLES: dict[str, Example] = {
    "pronoun": Example(
        title="By hand",
        prompt="cat sleeps it",
        words=("cat", "sleeps", "it", "purrs", "rains"),
        embedding=((2, 0, 0, 0), (0, 2, 0, 0), (0, 0, 2, 0), (0, 0, 0, 0), (0, 0, 0, 0)),
        w_q=((0, 0), (1, 0), (1, 0), (0, 0)),  # a verb and a pronoun ask for an animal
        w_k=((1, 0), (0, 1), (0, 0), (0, 0)),  # an animal is found by the first number, a verb by the second
        w_v=((1, 0), (0, 1), (0, 0), (0, 0)),
        w_o=((0, 0, 0, 1), (0, 0, 0, 0)),  # whose animal it is
        up=((0, 0, 1, 1), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, -1)),
        up_bias=(-1, 0, 0, -1),  # a pronoun that stands for something; an animal; a verb; a pronoun for nothing
        down=((0, 0, 0, 2), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, -2)),
        head=((-1, -1, -1, 0), (2, -1, -1, 0), (-1, 2, -1, 0), (-1, -1, 1, 2), (-1, -1, 1, -2)),
    ),
    "notebook": Example(
        title="Notebook",
        prompt="one two three",
        words=("one", "two", "three"),
        embedding=((0.1, 0.2, 0.3, 0.4), (0.5, 0.4, 0.3, 0.2), (0.0, 0.1, 0.0, 0.1)),
        w_q=((0.2, -0.1), (0.0, 0.1), (0.1, 0.2), (-0.1, 0.0)),
        w_k=((0.1, 0.1), (0.0, -0.1), (0.2, 0.0), (0.0, 0.2)),
        w_v=((0.1, 0.0), (-0.1, 0.1), (0.2, -0.1), (0.0, 0.2)),
        w_o=((1, 0, 0, 0), (0, 1, 0, 0)),
    ),
}


def worked_example(name: str) -> Checkpoint:
    """A new copy of an example as a checkpoint, in float64 so that all digits of its numbers are right."""
    from ..storage import Checkpoint

    example = EXAMPLES[name]
    config = ModelConfig(
        vocab_size=1 + len(example.words),
        context_length=3,
        n_layers=1,
        d_model=4,
        n_heads=2,
        d_ff=4,
        positions="none",
        norm_placement="post",
        activation="relu",
        qkv_bias=False,
        attention_output_bias=False,
        tie_embeddings=example.head is None,
    )
    model = Transformer(config).double()
    block = model.blocks[0]
    with torch.no_grad():
        for parameter in (*block.attention.parameters(), *block.feedforward.parameters()):
            parameter.zero_()
        model.embedding.weight.copy_(_rows((0.0,) * 4, *example.embedding))
        if example.head is not None:
            model.head.weight.copy_(_rows((-2.0,) * 4, *example.head))
        qkv = block.attention.qkv.weight.view(3, 2, 2, 4)  # q, k, v; head; row; column
        for matrix, weight in zip(qkv, (example.w_q, example.w_k, example.w_v)):
            matrix[0] = _rows(*weight).T
        block.attention.out.weight[:, :2] = _rows(*example.w_o).T
        block.feedforward.up.weight.copy_(_rows(*example.up))
        block.feedforward.up.bias.copy_(_rows(example.up_bias)[0])
        block.feedforward.down.weight.copy_(_rows(*example.down).T)
    about = {"prompt": example.prompt, "example": name}
    return Checkpoint(model, WordTokenizer(example.words), History(), example.title, about)


def _rows(*rows: Sequence[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)
