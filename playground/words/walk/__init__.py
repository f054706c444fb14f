"""The walk in words: what each step is for, its formula, its lines of PyTorch, and what to see in its numbers.

vectors.py     before attention: embedding, the layers before, the norm
attention.py   from vectors to queries, keys and values
weights.py     scores, mask, softmax, weighted average of the values
stream.py      after attention: projected back, added, MLP, prediction
described.py   what all of them share

The lines of all steps, run one after another, make every tensor that is drawn: `model` and `ids` are given, `torch`,
`math`, `F` (torch.nn.functional) and `Pass` (playground.model) imported.
"""

from __future__ import annotations

from collections.abc import Callable

from ...inspection.walk import Step
from . import attention, stream, vectors, weights
from .described import Described, Here

_STEPS: dict[str, Callable[[Here], Described]] = {
    "embed": vectors.embed,
    "arrive": vectors.arrive,
    "norm": vectors.norm,
    "project": attention.project,
    "split": attention.split,
    "qk_norm": attention.qk_norm,
    "rotate": attention.rotate,
    "share": attention.share,
    "scores": weights.scores,
    "mask": weights.mask,
    "softmax": weights.softmax,
    "mix": weights.mix,
    "output": stream.output,
    "add": stream.add,
    "mlp": stream.mlp,
    "predict": stream.predict,
}

__all__ = ["Described", "describe"]


def describe(step: Step) -> Described:
    """A step of the walk in words."""
    return _STEPS[step.name](Here(step))
