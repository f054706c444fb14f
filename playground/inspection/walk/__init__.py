"""The walk: one prompt through one layer, step by step, each with its numbers, its formula, its line of PyTorch.

attention.py   from queries, keys and values to the blend
stream.py      the vectors in and out: embedding, projection, what changed, feed-forward, prediction
step.py        what a step is

B = 1 prompt, T = tokens, d = d_model, H = query heads, Hkv = key/value heads, D = d_head, V = vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

from ..look import Look
from . import attention, stream
from .step import Step

STEPS: dict[str, Callable[[Look, int, int, int, int], Step]] = {
    "embed": stream.embed,
    "project": attention.project,
    "split": attention.split,
    "turn": attention.turn,
    "scores": attention.scores,
    "mask": attention.mask,
    "softmax": attention.softmax,
    "blend": attention.blend,
    "output": stream.output,
    "change": stream.change,
    "think": stream.think,
    "predict": stream.predict,
}
"""Every step in its order, as a function of look, layer, head, query and key."""

__all__ = ["STEPS", "Step", "step", "step_names"]


def step_names(look: Look) -> tuple[str, ...]:
    """The steps in their order; `turn` only where positions are rotary."""
    return tuple(name for name in STEPS if name != "turn" or look.config.positions == "rotary")


def step(look: Look, name: str, layer: int, head: int, query: int, key: int) -> Step:
    """One step for this place."""
    return STEPS[name](look, layer, head, query, key)
