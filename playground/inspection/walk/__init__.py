"""The walk: one prompt through one layer, step by step, each with its reason, its formula, its lines of PyTorch.

vectors.py     before attention: embedding, the layers before, the norm
attention.py   from vectors to queries, keys and values that are ready to meet
looking.py     scores, mask, softmax, blend
stream.py      after attention: projected back, added, feed-forward, prediction
step.py        what a step is, and where it is looked at

The lines of all steps, run one after another, make every tensor that is drawn: `model` and `ids` are given, `torch`,
`math`, `F` (torch.nn.functional) and `Pass` (playground.model) imported.

B = 1 prompt, T = tokens, d = d_model, H = query heads, Hkv = key/value heads, D = d_head, V = vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

from ...model import ModelConfig
from ..look import Look
from . import attention, looking, stream, vectors
from .step import At, Step

STEPS: dict[str, Callable[[At], Step]] = {
    "embed": vectors.embed,
    "arrive": vectors.arrive,
    "norm": vectors.even,
    "project": attention.project,
    "split": attention.split,
    "calm": attention.calm,
    "turn": attention.turn,
    "share": attention.share,
    "scores": looking.scores,
    "mask": looking.mask,
    "softmax": looking.softmax,
    "blend": looking.blend,
    "output": stream.output,
    "change": stream.change,
    "think": stream.think,
    "predict": stream.predict,
}
"""Every step in its order."""

_ONLY_WHERE: dict[str, Callable[[ModelConfig, int], bool]] = {
    "arrive": lambda config, layer: layer > 0,
    "norm": lambda config, layer: config.norm_placement == "pre",
    "calm": lambda config, layer: config.qk_norm,
    "turn": lambda config, layer: config.positions == "rotary",
    "share": lambda config, layer: config.kv_heads < config.n_heads,
}

__all__ = ["STEPS", "At", "Step", "step", "step_names"]


def step_names(look: Look, layer: int) -> tuple[str, ...]:
    """The steps that this model takes in this layer, in their order."""
    return tuple(name for name in STEPS if name not in _ONLY_WHERE or _ONLY_WHERE[name](look.config, layer))


def step(look: Look, name: str, layer: int, head: int, query: int, key: int) -> Step:
    """One step for this place."""
    return STEPS[name](At(look, layer, head, query, key))
